/* SPDX-License-Identifier: MIT
 *
 * How the kernels of batch-norm add up a block of channels over (n,S): vectors of a plane in runs
 * of fp32 by two accumulators, their totals in double, so that the error does not grow with n*S.
 * One thread does it all in this order, so neither the number of threads nor the kernel that asks
 * changes a bit.
 */
#ifndef NN_SIMD_SUMS_H
#define NN_SIMD_SUMS_H

#include "nn/simd/simd_private.h"

enum { NN_RUN = 64 }; /* vectors summed in fp32 */

typedef double nn_wide __attribute__((vector_size(4 * NN_LANES))); /* half the lanes */

struct nn_sums {
    nn_lanes part[2], part_2[2];  /* of vectors at even and at odd places of a plane */
    nn_wide total[2], total_2[2]; /* lower and upper lanes */
    int count;
};

NN_INLINE void nn_sums_widen(nn_wide total[2], nn_lanes part)
{
    total[0] += __builtin_convertvector(__builtin_shufflevector(part, part, NN_LOW_HALF), nn_wide);
    total[1] += __builtin_convertvector(__builtin_shufflevector(part, part, NN_HIGH_HALF), nn_wide);
}

/* At the end of every plane. */
NN_INLINE void nn_sums_flush(struct nn_sums *s)
{
    nn_sums_widen(s->total, s->part[0] + s->part[1]);
    nn_sums_widen(s->total_2, s->part_2[0] + s->part_2[1]);
    for (int odd = 0; odd < 2; odd++)
        s->part[odd] = s->part_2[odd] = (nn_lanes){0};
    s->count = 0;
}

/* Σ a and Σ a * b */
NN_INLINE void nn_sums_add(struct nn_sums *s, int odd, nn_lanes a, nn_lanes b)
{
    s->part[odd] += a;
    s->part_2[odd] += a * b;
}

/* After an even and an odd vector. */
NN_INLINE void nn_sums_added(struct nn_sums *s)
{
    s->count += 2;
    if (s->count == NN_RUN)
        nn_sums_flush(s);
}

NN_INLINE void nn_sums_store(const nn_wide total[2], float *to)
{
    for (int lane = 0; lane < NN_LANES; lane++)
        to[lane] = (float)total[lane / (NN_LANES / 2)][lane % (NN_LANES / 2)];
}

#endif
