/* SPDX-License-Identifier: MIT */
#include "train/update.h"

#include <math.h>

#include "nn/simd/simd.h"

/* The gradients of a range, without the head. */
static struct train_range gradients_of(const struct train_range *range)
{
    size_t head = range->offset < TRAIN_HEAD ? TRAIN_HEAD - range->offset : 0;

    if (head > range->count)
        head = range->count;
    return (struct train_range){range->offset + head - TRAIN_HEAD, range->count - head,
                                range->sum + head};
}

void train_update_clip_by(struct train_update *u, double squares)
{
    u->gradient_norm = sqrt(squares);
    u->hyper.gradient_scale = u->gradient_norm > u->clip ? u->clip / u->gradient_norm : 1;
}

void train_update_clip(struct train_update *u, const struct train_range *ranges, int count)
{
    double squares = 0;

    u->hyper.gradient_scale = 1;
    if (u->clip == 0)
        return;
    for (int i = 0; i < count; i++) {
        struct train_range range = gradients_of(&ranges[i]);

        if (range.count > 0)
            squares += nn_simd()->square_sum(range.count, range.sum);
    }
    train_update_clip_by(u, squares);
}

void train_update_ranges(struct train_update *u, const struct train_range *ranges, int count)
{
    train_update_clip(u, ranges, count);
    for (int i = 0; i < count; i++) {
        struct train_range range = gradients_of(&ranges[i]);
        struct nn_update part = {
            .count = range.count,
            .gradient = range.sum,
            .weight_in = u->weights + range.offset,
            .weight_out = u->weights + range.offset,
        };

        for (int slot = 0; slot < u->optimiser->slots; slot++) {
            part.slot_in[slot] = u->slots[slot] + range.offset;
            part.slot_out[slot] = u->slots[slot] + range.offset;
        }
        if (range.count > 0)
            nn_optimiser_update(u->optimiser, &u->hyper, &part);
    }
}
