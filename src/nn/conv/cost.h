/* SPDX-License-Identifier: MIT
 *
 * Estimates of how long a convolution takes, so that a kernel can be chosen without timing any:
 * counts of what a pass does, times a rate for each. A form's file has its rates, fitted to
 * the times of many shapes by tools/rates; they need only be right relative to those of the other
 * forms. Costs do not depend on the number of threads.
 */
#ifndef NN_CONV_COST_H
#define NN_CONV_COST_H

#include "nn/conv/conv.h"

/* What a pass does, or picoseconds of one thread for each such thing. */
struct nn_cost {
    double product; /* a multiply-add */
    double value;   /* a float of the activations that is read, transformed or written */
    double weight;  /* a float of the weights, the same */
};

struct nn_cost_rates {
    struct nn_cost forward, backward;
};

/* Seconds of the passes that the shape asks for. `forward` is what one forward does; each pass of
 * the backward (dw; dx when wanted) does as much. */
double nn_cost_seconds(const struct nn_conv_shape *shape, const struct nn_cost_rates *rates,
                       struct nn_cost forward);

/* What the forward of n_max samples does without a trick. */
struct nn_cost nn_cost_plain(const struct nn_conv_shape *shape);

/* The same by Winograd's method (nn/conv/simd/winograd.h): tiles of m x m outputs, `positions`
 * products each. */
struct nn_cost nn_cost_winograd(const struct nn_conv_shape *shape, int m, int positions);

/* Winograd forms work on blocks of images: */
enum {
    NN_WINOGRAD_FLOATS = 1 << 20, /* of V and dM of a block: they stay in L3, */
    NN_WINOGRAD_TILES = 64, /* but so many tiles at least pay for a transform of the weights */
};

/* Row length of c8 channel blocks: no long power of two, whose rows would fall into one set. */
static inline size_t nn_winograd_row(int c8)
{
    const size_t row = (size_t)c8 * 8;

    return row % 128 == 0 ? row + 16 : row;
}

/* The fewest blocks that n images of so many tiles can go in. */
static inline int nn_winograd_blocks(int positions, int tiles, int i8, int o8, int n)
{
    const size_t image =
        (size_t)positions * (size_t)tiles * (nn_winograd_row(i8) + nn_winograd_row(o8));
    const int most = (int)(NN_WINOGRAD_FLOATS / image);
    const int least = (NN_WINOGRAD_TILES + tiles - 1) / tiles, room = most > least ? most : least;

    return (n + room - 1) / room;
}

#endif
