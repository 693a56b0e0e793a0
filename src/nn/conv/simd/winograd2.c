/* SPDX-License-Identifier: MIT
 *
 * F(2x2,3x3): 16 products for 36, at the points 0, ±1, ∞. More exact than F(4x4,3x3), and less
 * lost on small images.
 */
enum { M = 2, INPUT = 4, STEP = 2, POINTS = 4, PAIRS = 1, HALO = 1, SUM = 1 };

static const float BT[POINTS][INPUT] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};

static const float AT[M][POINTS] = {{1, 1, 1, 0}, {0, 1, -1, -1}};

static const float G[POINTS][3] = {
    {1, 0, 0},
    {1.0f / 2, 1.0f / 2, 1.0f / 2},
    {1.0f / 2, -1.0f / 2, 1.0f / 2},
    {0, 0, 1},
};

#define CONV NN_LEVEL(winograd2)
#include "nn/conv/simd/winograd_form.h"
