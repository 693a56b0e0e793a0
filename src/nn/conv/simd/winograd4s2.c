/* SPDX-License-Identifier: MIT
 *
 * 3x3 with stride 2, tiles of 4x4 outputs: 81 products for 144. As winograd2s2.c, with F(4,2) at
 * the points 0, ±1, 2, ∞ for the outer taps: five products for eight in each dimension.
 */
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

#define CONV NN_LEVEL(winograd4s2)
#include "nn/conv/simd/winograd_form.h"
