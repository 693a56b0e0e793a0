/* SPDX-License-Identifier: MIT
 *
 * Sums that one rank makes of all ranks' values, in any order that an all-reduce may use (enum
 * coll_order): the same bits, whichever rank computes them and whatever moved the values.
 */
#include <string.h>

#include "coll/coll_private.h"

enum { BLOCK = 512 }; /* floats of a partial sum, kept in the first cache */

struct tree {
    const float *const *x; /* one a rank */
    int size, power;       /* ranks; the largest power of two that is not above it */
    size_t from, count;    /* the block */
};

/* What rank r has after the exchange at this distance. */
static void sum_tree(const struct tree *t, int r, int distance, float *y)
{
    float more[BLOCK];
    const float *sources[] = {y, more};

    if (distance == t->power) {
        sources[0] = t->x[r] + t->from;
        if (r + t->power < t->size)
            sources[1] = t->x[r + t->power] + t->from;
        coll_kernels()->sum(t->count, r + t->power < t->size ? 2 : 1, sources, NULL, 1, &y, false);
        return;
    }
    sum_tree(t, r, 2 * distance, y);
    sum_tree(t, r + distance, 2 * distance, more);
    coll_kernels()->sum(t->count, 2, sources, NULL, 1, &y, false);
}

static void sum_by_tree(int size, size_t count, const float *const *x, float *y)
{
    struct tree t = {.x = x, .size = size, .power = 1};
    float sum[BLOCK];

    while (2 * t.power <= size)
        t.power *= 2;
    for (; t.from < count;
         t.from += t.count) { /* y may be among x: a block is read, then written */
        t.count = coll_least(count - t.from, BLOCK);
        sum_tree(&t, 0, 1, sum);
        memcpy(y + t.from, sum, t.count * sizeof *y);
    }
}

void coll_sum_in_order(enum coll_order order, int size, int slice, size_t count,
                       const float *const *x, float *y)
{
    const float *sources[COMM_MAX_WORKERS];
    int first = order == COLL_ORDER_RING ? slice + 1 : 0;

    if (order == COLL_ORDER_TREE) {
        sum_by_tree(size, count, x, y);
        return;
    }
    for (int i = 0; i < size; i++)
        sources[i] = x[(first + i) % size];
    coll_kernels()->sum(count, size, sources, NULL, 1, &y, false);
}
