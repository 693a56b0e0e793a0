/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of recsys/kernels, each of which is compiled once for every CPU level with
 * RECSYS_SIMD_LEVEL set to the level's name. Functions that take vectors are inline: how a vector
 * is passed differs by level.
 */
#ifndef RECSYS_KERNELS_PRIVATE_H
#define RECSYS_KERNELS_PRIVATE_H

#include "recsys/kernels/kernels.h"

#define RECSYS_JOIN_(level, name) recsys_##level##_##name
#define RECSYS_JOIN(level, name) RECSYS_JOIN_(level, name)
#define RECSYS_LEVEL(name) RECSYS_JOIN(RECSYS_SIMD_LEVEL, name)
#define RECSYS_INLINE static inline __attribute__((always_inline))
#define RECSYS_MIX __builtin_shufflevector

typedef float recsys_v8 __attribute__((vector_size(32)));
typedef float recsys_v8_at __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t recsys_i8 __attribute__((vector_size(32)));
typedef int32_t recsys_i8_at __attribute__((vector_size(32), aligned(4), may_alias));

RECSYS_INLINE recsys_v8 load8(const float *from)
{
    return *(const recsys_v8_at *)from;
}

RECSYS_INLINE void store8(float *to, recsys_v8 value)
{
    *(recsys_v8_at *)to = value;
}

RECSYS_INLINE recsys_v8 splat8(float value)
{
    return (recsys_v8){value, value, value, value, value, value, value, value};
}

RECSYS_INLINE float total8(recsys_v8 x)
{
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

/* Sums of neighbours, of a and b by turns in halves of a register: what `hadd` does. */
RECSYS_INLINE recsys_v8 pair8(recsys_v8 a, recsys_v8 b)
{
    return RECSYS_MIX(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
           RECSYS_MIX(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
}

/* The totals of eight vectors. */
RECSYS_INLINE recsys_v8 totals8(const recsys_v8 a[8])
{
    const recsys_v8 low = pair8(pair8(a[0], a[1]), pair8(a[2], a[3]));
    const recsys_v8 high = pair8(pair8(a[4], a[5]), pair8(a[6], a[7]));

    return RECSYS_MIX(low, high, 0, 1, 2, 3, 8, 9, 10, 11) +
           RECSYS_MIX(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
}

float RECSYS_LEVEL(dot)(int k, const float *a, const float *b);
void RECSYS_LEVEL(syrk)(int k, const float *panel, int n, float *triangle,
                        const struct recsys_ahead *next);
void RECSYS_LEVEL(pack)(const struct recsys_pack *pack, float *panel, float *y);
double RECSYS_LEVEL(project)(int k, const float *panel, const float *y, int n, float *sum);
float RECSYS_LEVEL(quadratic)(int k, const float *triangle, const float *x);
void RECSYS_LEVEL(lanes_gather)(int k, const float *triangles, const float *prior,
                                const float *scale, float *lower);
void RECSYS_LEVEL(lanes_cholesky)(int k, float *lower);
void RECSYS_LEVEL(lanes_solve)(int k, const float *lower, float *x, const float *noise);
void RECSYS_LEVEL(normals)(int count, const uint32_t *words, float *z);
void RECSYS_LEVEL(weigh)(int k, const float *panel, int n, const float *w, const float *c,
                         const float *v, float *out);
void RECSYS_LEVEL(gather)(int k, const float *rows, const uint32_t *index, int n, float *panel);
void RECSYS_LEVEL(site)(const uint32_t *index, size_t count, const float *share, float precision,
                        const float *noise, float *rest, float *y);
void RECSYS_LEVEL(sgd)(const struct recsys_sgd *sgd, const struct recsys_cell *cell);

#endif
