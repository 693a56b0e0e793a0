/* SPDX-License-Identifier: MIT
 *
 * F(2x2,3x3): 16 products for 36, at the points 0, ±1, ∞. More exact than F(4x4,3x3), and less
 * lost on small images.
 */
#include "nn/conv/form.h"

enum { M = 2, INPUT = 4, STEP = 2, POINTS = 4, PAIRS = 1, HALO = 1, SUM = 1 };

static const float BT[POINTS][INPUT] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};

static const float AT[M][POINTS] = {{1, 1, 1, 0}, {0, 1, -1, -1}};

static const float G[POINTS][3] = {
    {1, 0, 0},
    {1.0f / 2, 1.0f / 2, 1.0f / 2},
    {1.0f / 2, -1.0f / 2, 1.0f / 2},
    {0, 0, 1},
};

static const struct nn_cost_rates rates[BASE_CPU_LEVELS] = {
    [BASE_CPU_portable] = {{103.9, 354, 5}, {104.5, 249, 280}},
    [BASE_CPU_avx2] = {{24.7, 148, 150}, {28.3, 137, 180}},
    [BASE_CPU_avx512] = {{24.7, 148, 150}, {28.3, 137, 180}},
};

#include "nn/conv/simd/winograd_form.h"

const struct nn_conv NN_LEVEL(conv_winograd2) = {
    .name = "winograd2",
    .help = "Winograd F(2x2,3x3): 3x3, stride 1, padding 0 or 1; more exact than winograd4",
    .serves = winograd_serves,
    WINOGRAD_SLOTS,
};
