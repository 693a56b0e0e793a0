/* SPDX-License-Identifier: MIT
 *
 * Numbers that every rank can compute, and the sums that collectives must give, bit for bit.
 */
#ifndef SUPPORT_SUMS_H
#define SUPPORT_SUMS_H

#include <stdbool.h>

#include "coll/algorithm.h"

float sums_value(int rank, size_t index); /* in [-1, 1) */
void sums_fill(int rank, size_t count, float *x);

/* Σ scale[r]·sums_value(r, i) in the order an algorithm says it has. */
void sums_reference(enum coll_order order, const struct comm_view *view, size_t count,
                    const float *scale, float *y);
bool sums_same(size_t count, const float *a, const float *b); /* bits */
/* The largest |a - b|. */
float sums_distance(size_t count, const float *a, const float *b);

#endif
