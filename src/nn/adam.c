/* SPDX-License-Identifier: MIT */
#include "nn/adam.h"

#include <math.h>

void nn_adam_update(const struct nn_hyper *hyper, const struct nn_update *u,
                    struct nn_adam_decay decay)
{
    const double correction1 = 1.0 - pow(hyper->beta1, (double)hyper->step);
    const double correction2 = 1.0 - pow(hyper->beta2, (double)hyper->step);
    const float beta1 = (float)hyper->beta1, rest1 = (float)(1.0 - hyper->beta1);
    const float beta2 = (float)hyper->beta2, rest2 = (float)(1.0 - hyper->beta2);
    const float rate = (float)(hyper->lr / correction1), root2 = (float)sqrt(correction2);
    const float epsilon = (float)hyper->epsilon, scale = (float)hyper->gradient_scale;
    const float *gradient = u->gradient, *weight_in = u->weight_in;
    const float *mean_in = u->slot_in[0], *square_in = u->slot_in[1];
    const bool lazy = hyper->lazy;
    float *weight_out = u->weight_out, *mean_out = u->slot_out[0], *square_out = u->slot_out[1];

#pragma omp parallel for simd
    for (size_t i = 0; i < u->count; i++) {
        float weight = weight_in[i], g = gradient[i] * scale + decay.gradient * weight;
        float mean = beta1 * mean_in[i] + rest1 * g;
        float square = beta2 * square_in[i] + rest2 * g * g;

        float moved = weight * decay.weight - rate * (mean / (sqrtf(square) / root2 + epsilon));
        bool stays = lazy && gradient[i] == 0;

        weight_out[i] = stays ? weight : moved;
        mean_out[i] = stays ? mean_in[i] : mean;
        square_out[i] = stays ? square_in[i] : square;
    }
}
