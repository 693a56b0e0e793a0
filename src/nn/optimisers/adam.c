/* SPDX-License-Identifier: MIT
 *
 * Adam (Kingma and Ba 2014) as torch.optim.Adam: L2 decay added to the gradient, so that the decay
 * goes through both moments. adamw.c keeps it apart.
 */
#include <math.h>

#include "nn/optimiser.h"

static void adam_update(const struct nn_hyper *hyper, const struct nn_update *u)
{
    const double correction1 = 1.0 - pow(hyper->beta1, (double)hyper->step);
    const double correction2 = 1.0 - pow(hyper->beta2, (double)hyper->step);
    const float beta1 = (float)hyper->beta1, rest1 = (float)(1.0 - hyper->beta1);
    const float beta2 = (float)hyper->beta2, rest2 = (float)(1.0 - hyper->beta2);
    const float rate = (float)(hyper->lr / correction1), root2 = (float)sqrt(correction2);
    const float decay = (float)hyper->weight_decay;
    const float epsilon = (float)hyper->epsilon, scale = (float)hyper->gradient_scale;
    const float *gradient = u->gradient, *weight_in = u->weight_in;
    const float *mean_in = u->slot_in[0], *square_in = u->slot_in[1];
    float *weight_out = u->weight_out, *mean_out = u->slot_out[0], *square_out = u->slot_out[1];

#pragma omp parallel for simd
    for (size_t i = 0; i < u->count; i++) {
        float weight = weight_in[i], g = gradient[i] * scale + decay * weight;
        float mean = beta1 * mean_in[i] + rest1 * g;
        float square = beta2 * square_in[i] + rest2 * g * g;

        mean_out[i] = mean;
        square_out[i] = square;
        weight_out[i] = weight - rate * (mean / (sqrtf(square) / root2 + epsilon));
    }
}

const struct nn_optimiser nn_optimiser_adam = {
    .name = "adam",
    .help = "Adam, weight decay as part of the gradient",
    .slots = 2,
    .slot_names = {"exp_avg", "exp_avg_sq"},
    .update = adam_update,
};
