/* SPDX-License-Identifier: MIT */
#include "train/update.h"

#include <math.h>

#include "nn/simd/simd.h"

/* The gradients of a range: what lies behind the head. */
static struct train_range gradients_of(const struct train_range *range)
{
    size_t head = range->offset < TRAIN_HEAD ? TRAIN_HEAD - range->offset : 0;

    if (head > range->count)
        head = range->count;
    return (struct train_range){range->offset + head - TRAIN_HEAD, range->count - head,
                                range->sum + head};
}

static void clip(struct train_step *step, const struct train_range *ranges, int count)
{
    double squares = 0;

    for (int i = 0; i < count; i++) {
        struct train_range range = gradients_of(&ranges[i]);

        if (range.count > 0)
            squares += nn_simd()->square_sum(range.count, range.sum);
    }
    step->gradient_norm = sqrt(squares);
    if (step->gradient_norm > step->clip)
        step->hyper.gradient_scale = step->clip / step->gradient_norm;
}

void train_update(struct train_step *step, const struct train_range *ranges, int count)
{
    step->hyper.gradient_scale = 1;
    if (step->clip > 0)
        clip(step, ranges, count);
    for (int i = 0; i < count; i++) {
        struct train_range range = gradients_of(&ranges[i]);
        struct nn_update update = {
            .count = range.count,
            .gradient = range.sum,
            .weight_in = step->weights + range.offset,
            .weight_out = step->weights + range.offset,
        };

        for (int slot = 0; slot < step->optimiser->slots; slot++) {
            update.slot_in[slot] = step->slots[slot] + range.offset;
            update.slot_out[slot] = step->slots[slot] + range.offset;
        }
        if (range.count > 0)
            step->optimiser->update(&step->hyper, &update);
    }
}
