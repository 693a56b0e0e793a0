/* SPDX-License-Identifier: MIT
 *
 * AdamW (Loshchilov and Hutter 2017) as torch.optim.AdamW: decay apart from the gradient.
 */
#include "nn/adam.h"

static void adamw_update(const struct nn_hyper *hyper, const struct nn_update *u)
{
    const float shrink = (float)(1.0 - hyper->lr * hyper->weight_decay);

    nn_adam_update(hyper, u, (struct nn_adam_decay){.weight = shrink});
}

const struct nn_optimiser nn_optimiser_adamw = {
    .name = "adamw",
    .help = "Adam with decoupled weight decay",
    .slots = 2,
    .slot_names = {"exp_avg", "exp_avg_sq"},
    .update = adamw_update,
};
