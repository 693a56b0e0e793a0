/* SPDX-License-Identifier: MIT
 *
 * 3x3 with stride 2, tiles of 2x2 outputs: 25 products for 36. In each dimension the middle tap
 * meets every other input alone (two products), and the outer taps are a convolution of two taps
 * over the inputs between, F(2,2), three products for four:
 *     g0 (d0 - d2), (g0 + g2) d2, g2 (d4 - d2); g1 d1, g1 d3
 * Only sums and differences, so it is as exact as a plain convolution.
 */
#include "nn/conv/form.h"

enum { M = 2, INPUT = 5, STEP = 4, POINTS = 5, PAIRS = 0, HALO = 1, SUM = 1 };

static const float BT[POINTS][INPUT] = {
    {1, 0, -1, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, -1, 0, 1}, {0, 1, 0, 0, 0}, {0, 0, 0, 1, 0},
};

static const float AT[M][POINTS] = {{1, 1, 0, 1, 0}, {0, 1, 1, 0, 1}};

static const float G[POINTS][3] = {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}, {0, 1, 0}};

static const struct nn_cost_rates rates[BASE_CPU_LEVELS] = {
    [BASE_CPU_portable] = {{100.5, 368, 1}, {110.2, 304, 5}},
    [BASE_CPU_avx2] = {{25.5, 170, 63}, {26.3, 291, 107}},
    [BASE_CPU_avx512] = {{25.5, 170, 63}, {26.3, 291, 107}},
};

#include "nn/conv/simd/winograd_form.h"

const struct nn_conv NN_LEVEL(conv_winograd2s2) = {
    .name = "winograd2s2",
    .help = "Winograd in tiles of 2x2: 3x3, stride 2, padding 0 or 1",
    .serves = winograd_serves,
    WINOGRAD_SLOTS,
};
