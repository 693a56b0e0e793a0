/* SPDX-License-Identifier: MIT
 *
 * The micro-kernel under dense layers and convolutions, private to nn/simd: a tile of rows x
 * panels of eight accumulators, with strides that say where rows, panels and the contracted
 * elements are. Nothing is packed: callers keep their data so that the contracted vectors follow
 * one another.
 */
#ifndef NN_SIMD_GEMM_H
#define NN_SIMD_GEMM_H

#include "nn/simd/simd_private.h"

/* NN_ROWS * NN_PANELS accumulators, NN_PANELS weights and a broadcast value must fit the
 * registers: 32 of 16 floats with AVX-512, where a register holds two panels, 16 of 8 with AVX, 32
 * of 4 on ARM, 16 of 4 elsewhere. */
#if defined(__AVX512F__)
enum { NN_ROWS = 12, NN_PANELS = 4 };
#elif defined(__AVX__) || defined(__aarch64__)
enum { NN_ROWS = 6, NN_PANELS = 2 };
#else
enum { NN_ROWS = 6, NN_PANELS = 1 };
#endif

/* Contracted in one go: panels of it are 16 KB, half of L1. */
enum { NN_DEPTH = 256 };

/* c(r,p) (+)= Σ_j Σ_t a(r,j,t) * b(j,t,p): element a is a[r*a_row + j*a_block + t*a_step], vector
 * b is b[j*b_block + t*b_step + p*b_panel], vector c is c[r*c_row + p*c_panel]. */
struct nn_tile {
    const float *a, *b, *bias; /* bias: vector p is bias[8p], or NULL; not with add */
    float *c;
    size_t a_row, a_step, a_block, b_step, b_block, b_panel, c_row, c_panel;
    size_t fetch[2]; /* packed: floats from b to what is asked for meanwhile */
    int depth;       /* of t */
    int blocks;      /* of j; 0 is 1 */
    bool add;        /* to c instead of overwriting it */
};

#define nn_gemm_rows NN_LEVEL(gemm_rows)
#define nn_gemm NN_LEVEL(gemm)

/* Any number of rows; up to NN_PANELS panels. */
void nn_gemm_rows(struct nn_tile t, int rows, int panels);

/* The same where b was packed for it: NN_PANELS vectors follow one another (b_panel is 8), zeros
 * for those that c does not have. */
#define nn_gemm_packed NN_LEVEL(gemm_packed)
void nn_gemm_packed(struct nn_tile t, int rows, int panels);

/* Any number of panels and any depth (blocks: 1): in slices of NN_DEPTH. */
void nn_gemm(struct nn_tile t, int rows, int panels);

#define NN_MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

/* to[j][i] = from[i][j], 8x8 */
NN_INLINE void nn_transpose(const float *from, float *to)
{
    nn_v8 a[8], b[8];

#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        a[i] = nn_load(from + (size_t)i * 8);
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        b[i] = NN_MIX(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = NN_MIX(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            a[i + 2 * j] = NN_MIX(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[i + 2 * j + 1] = NN_MIX(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        nn_store(to + (size_t)i * 8, NN_MIX(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
        nn_store(to + (size_t)(i + 4) * 8, NN_MIX(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
}

#endif
