/* SPDX-License-Identifier: MIT
 *
 * 3x3 with stride 2, tiles of 4x4 outputs: 81 products for 144. As winograd2s2.c, with F(4,2) at
 * the points 0, ±1, 2, ∞ for the outer taps: five products for eight in each dimension.
 */
#include "nn/conv/form.h"

enum { M = 4, INPUT = 9, STEP = 8, POINTS = 9, PAIRS = 0, HALO = 1, SUM = 1 };

static const float BT[POINTS][INPUT] = {
    {2, 0, -1, 0, -2, 0, 1, 0, 0}, {0, 0, -2, 0, -1, 0, 1, 0, 0}, {0, 0, 2, 0, -3, 0, 1, 0, 0},
    {0, 0, -1, 0, 0, 0, 1, 0, 0},  {0, 0, 2, 0, -1, 0, -2, 0, 1}, {0, 1, 0, 0, 0, 0, 0, 0, 0},
    {0, 0, 0, 1, 0, 0, 0, 0, 0},   {0, 0, 0, 0, 0, 1, 0, 0, 0},   {0, 0, 0, 0, 0, 0, 0, 1, 0},
};

static const float AT[M][POINTS] = {
    {1, 1, 1, 1, 0, 1, 0, 0, 0},
    {0, 1, -1, 2, 0, 0, 1, 0, 0},
    {0, 1, 1, 4, 0, 0, 0, 1, 0},
    {0, 1, -1, 8, 1, 0, 0, 0, 1},
};

static const float G[POINTS][3] = {
    {1.0f / 2, 0, 0},
    {-1.0f / 2, 0, -1.0f / 2},
    {-1.0f / 6, 0, 1.0f / 6},
    {1.0f / 6, 0, 1.0f / 3},
    {0, 0, 1},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
};

static const struct nn_cost_rates rates[BASE_CPU_LEVELS] = {
    [BASE_CPU_portable] = {{105.2, 414, 1}, {110.6, 134, 22}},
    [BASE_CPU_avx2] = {{26.3, 201, 130}, {30.8, 255, 181}},
    [BASE_CPU_avx512] = {{26.3, 201, 130}, {30.8, 255, 181}},
};

#include "nn/conv/simd/winograd_form.h"

const struct nn_conv NN_LEVEL(conv_winograd4s2) = {
    .name = "winograd4s2",
    .help = "Winograd in tiles of 4x4: 3x3, stride 2, padding 0 or 1",
    .serves = winograd_serves,
    WINOGRAD_SLOTS,
};
