/* SPDX-License-Identifier: MIT
 *
 * One worker: nothing to combine, the gradient is the gradient.
 */
#include <math.h>

#include "nn/simd/simd.h"
#include "train/strategy.h"

static base_status finish(struct train_step *step)
{
    struct nn_update update = {
        .count = step->floats,
        .gradient = step->gradients,
        .weight_in = step->weights,
        .weight_out = step->weights,
    };

    step->hyper.gradient_scale = 1;
    if (step->clip > 0) {
        step->gradient_norm = sqrt(nn_simd()->square_sum(step->floats, step->gradients));
        if (step->gradient_norm > step->clip)
            step->hyper.gradient_scale = step->clip / step->gradient_norm;
    }
    for (int i = 0; i < step->optimiser->slots; i++) {
        update.slot_in[i] = step->slots[i];
        update.slot_out[i] = step->slots[i];
    }
    step->optimiser->update(&step->hyper, &update);
    return BASE_OK;
}

const struct train_strategy train_strategy_single = {
    .name = "single",
    .help = "one worker does everything",
    .commit_unit = "step",
    .finish = finish,
};
