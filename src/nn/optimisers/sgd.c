/* SPDX-License-Identifier: MIT
 *
 * Stochastic gradient descent as torch.optim.SGD: L2 decay added to the gradient, momentum
 * without dampening (the buffer starts as zero, so it is the gradient after the first step).
 */
#include "nn/optimiser.h"

static void sgd_update(const struct nn_hyper *hyper, const struct nn_update *u)
{
    const float lr = (float)hyper->lr, momentum = (float)hyper->momentum;
    const float decay = (float)hyper->weight_decay, scale = (float)hyper->gradient_scale;
    const bool nesterov = hyper->nesterov, lazy = hyper->lazy;
    const float *gradient = u->gradient, *weight_in = u->weight_in, *buffer_in = u->slot_in[0];
    float *weight_out = u->weight_out, *buffer_out = u->slot_out[0];

#pragma omp parallel for simd
    for (size_t i = 0; i < u->count; i++) {
        float weight = weight_in[i];
        float g = gradient[i] * scale + decay * weight;
        float buffer = momentum * buffer_in[i] + g;
        bool stays = lazy && gradient[i] == 0;

        weight_out[i] = stays ? weight : weight - lr * (nesterov ? g + momentum * buffer : buffer);
        buffer_out[i] = stays ? buffer_in[i] : buffer;
    }
}

const struct nn_optimiser nn_optimiser_sgd = {
    .name = "sgd",
    .help = "gradient descent with momentum, Nesterov's form as an option",
    .slots = 1,
    .slot_names = {"momentum_buffer"},
    .update = sgd_update,
};
