/* SPDX-License-Identifier: MIT
 *
 * 2x2 images with padding 1: a convolution there is a product with a 2x2 Toeplitz matrix, three
 * products for four in each dimension (nine for sixteen, and for the 36 of a plain loop):
 *     t = g1 (d0 + d1), y0 = t + (g2 - g1) d1, y1 = t + (g0 - g1) d0
 * Only sums and differences, so it is as exact as a plain convolution.
 */
enum { M = 2, INPUT = 2, STEP = 2, POINTS = 3, PAIRS = 0, HALO = 0, SUM = 2 };

static const float BT[POINTS][INPUT] = {{1, 0}, {0, 1}, {1, 1}};

static const float AT[M][POINTS] = {{0, 1, 1}, {1, 0, 1}};

static const float G[POINTS][3] = {{1, -1, 0}, {0, -1, 1}, {0, 1, 0}};

#define CONV NN_LEVEL(toeplitz2)
#include "nn/conv/simd/winograd_form.h"
