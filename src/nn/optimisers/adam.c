/* SPDX-License-Identifier: MIT
 *
 * Adam (Kingma and Ba 2014) as torch.optim.Adam: L2 decay added to the gradient, so that the decay
 * goes through both moments. adamw.c keeps it apart.
 */
#include "nn/adam.h"

static void adam_update(const struct nn_hyper *hyper, const struct nn_update *u)
{
    nn_adam_update(hyper, u,
                   (struct nn_adam_decay){.gradient = (float)hyper->weight_decay, .weight = 1});
}

const struct nn_optimiser nn_optimiser_adam = {
    .name = "adam",
    .help = "Adam, weight decay as part of the gradient",
    .slots = 2,
    .slot_names = {"exp_avg", "exp_avg_sq"},
    .update = adam_update,
};
