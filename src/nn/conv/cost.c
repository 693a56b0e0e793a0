/* SPDX-License-Identifier: MIT */
#include "nn/conv/cost.h"

/* Rows that a matrix product of few rows wastes, on average. */
enum { SPARE_ROWS = 2 };

static double total(struct nn_cost counts, struct nn_cost rates)
{
    return 1e-12 * (counts.product * rates.product + counts.value * rates.value +
                    counts.weight * rates.weight);
}

double nn_cost_seconds(const struct nn_conv_shape *shape, const struct nn_cost_rates *rates,
                       struct nn_cost forward)
{
    const int backward = !shape->training ? 0 : shape->want_dx ? 2 : 1;

    return total(forward, rates->forward) + backward * total(forward, rates->backward);
}

struct nn_cost nn_cost_plain(const struct nn_conv_shape *s)
{
    const double n = s->n_max, taps = (double)s->kernel[0] * s->kernel[1];
    const double inputs = s->in.planar ? s->in.c : nn_pad8(s->in.c);
    const double outputs = (double)nn_shape_floats(s->out);

    return (struct nn_cost){
        .product = n * outputs * inputs / s->groups * taps,
        .value = n * ((double)nn_shape_floats(s->in) + outputs),
        .weight = nn_pad8(s->out.c) * inputs / s->groups * taps,
    };
}

struct nn_cost nn_cost_winograd(const struct nn_conv_shape *s, int m, int positions)
{
    const int i8 = nn_pad8(s->in.c) / NN_BLOCK, o8 = nn_pad8(s->out.c) / NN_BLOCK;
    const int tiles = ((s->out.h + m - 1) / m) * ((s->out.w + m - 1) / m);
    const int blocks = nn_winograd_blocks(positions, tiles, i8, o8, s->n_max);
    const double all_tiles = (double)s->n_max * tiles, weights = 64.0 * i8 * o8 * positions;

    return (struct nn_cost){
        .product = weights * (all_tiles + SPARE_ROWS * blocks),
        .value = all_tiles * positions * 8.0 * (i8 + o8),
        .weight = weights * blocks,
    };
}
