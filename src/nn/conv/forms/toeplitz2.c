/* SPDX-License-Identifier: MIT
 *
 * 2x2 images with padding 1: a convolution there is a product with a 2x2 Toeplitz matrix, three
 * products for four in each dimension (nine for sixteen, and for the 36 of a plain loop):
 *     t = g1 (d0 + d1), y0 = t + (g2 - g1) d1, y1 = t + (g0 - g1) d0
 * Only sums and differences, so it is as exact as a plain convolution.
 */
#include "nn/conv/form.h"

enum { M = 2, INPUT = 2, STEP = 2, POINTS = 3, PAIRS = 0, HALO = 0, SUM = 2 };

static const float BT[POINTS][INPUT] = {{1, 0}, {0, 1}, {1, 1}};

static const float AT[M][POINTS] = {{0, 1, 1}, {1, 0, 1}};

static const float G[POINTS][3] = {{1, -1, 0}, {0, -1, 1}, {0, 1, 0}};

static const struct nn_cost_rates rates[BASE_CPU_LEVELS] = {
    [BASE_CPU_portable] = {{99.6, 56, 177}, {97.8, 1, 424}},
    [BASE_CPU_avx2] = {{29.2, 3, 93}, {32.6, 1, 237}},
    [BASE_CPU_avx512] = {{29.2, 3, 93}, {32.6, 1, 237}},
};

#include "nn/conv/simd/winograd_form.h"

static bool toeplitz2_serves(const struct nn_conv_shape *s)
{
    return winograd_serves(s) && s->pad[0] == 1 && s->pad[1] == 1 && s->in.h == 2 && s->in.w == 2;
}

const struct nn_conv NN_LEVEL(conv_toeplitz2) = {
    .name = "toeplitz2",
    .help = "2x2 images, 3x3, padding 1: nine products, exact",
    .serves = toeplitz2_serves,
    WINOGRAD_SLOTS,
};
