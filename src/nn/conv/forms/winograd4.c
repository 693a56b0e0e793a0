/* SPDX-License-Identifier: MIT
 *
 * F(4x4,3x3): 36 products for 144, at the points 0, ±1, ±2, ∞.
 */
#include "nn/conv/form.h"

enum { M = 4, INPUT = 6, STEP = 4, POINTS = 6, PAIRS = 2, HALO = 1, SUM = 1 };

static const float BT[POINTS][INPUT] = {
    {4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
    {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1},
};

static const float AT[M][POINTS] = {
    {1, 1, 1, 1, 1, 0},
    {0, 1, -1, 2, -2, 0},
    {0, 1, 1, 4, 4, 0},
    {0, 1, -1, 8, -8, 1},
};

static const float G[POINTS][3] = {
    {1.0f / 4, 0, 0},
    {-1.0f / 6, -1.0f / 6, -1.0f / 6},
    {-1.0f / 6, 1.0f / 6, -1.0f / 6},
    {1.0f / 24, 1.0f / 12, 1.0f / 6},
    {1.0f / 24, -1.0f / 12, 1.0f / 6},
    {0, 0, 1},
};

static const struct nn_cost_rates rates[BASE_CPU_LEVELS] = {
    [BASE_CPU_portable] = {{105.9, 557, 47}, {106.8, 260, 235}},
    [BASE_CPU_avx2] = {{26.9, 209, 133}, {27, 206, 195}},
    [BASE_CPU_avx512] = {{26.9, 209, 133}, {27, 206, 195}},
};

#include "nn/conv/simd/winograd_form.h"

const struct nn_conv NN_LEVEL(conv_winograd4) = {
    .name = "winograd4",
    .help = "Winograd F(4x4,3x3): 3x3, stride 1, padding 0 or 1",
    .serves = winograd_serves,
    WINOGRAD_SLOTS,
};
