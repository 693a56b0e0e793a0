/* SPDX-License-Identifier: MIT
 *
 * Estimates of how long a convolution takes, so that a kernel can be chosen without timing any:
 * counts of what a pass does, times a rate for each. A candidate's file has its rates, fitted to
 * the times of many shapes by tools/rates; they need only be right relative to those of the other
 * candidates. Costs do not depend on the number of threads.
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

/* The same by a form of nn/conv/simd/winograd.h: tiles of m x m outputs, `positions` products each.
 */
struct nn_cost nn_cost_winograd(const struct nn_conv_shape *shape, int m, int positions);

#endif
