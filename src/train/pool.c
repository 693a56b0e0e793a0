/* SPDX-License-Identifier: MIT
 *
 * What lives when, in half steps. Step t computes the t-th group of a pass. In its first half the
 * engine sums the gradients of group t - 1, in its second half it gathers the weights of t + 1:
 *
 *   weights of t     from the second half of step t - 1 to the end of step t
 *   gradients of t   from the beginning of step t to the first half of step t + 1
 *
 * So weights may come into the memory of the gradients that were summed just before, and three
 * buffers are enough. They are placed largest first, at the lowest offset that is free while they
 * live.
 */
#include "train/pool.h"

#include <stdlib.h>

#include "base/mem.h"

enum { UNIT = 16 }; /* floats: a cache line, which kernels like to begin at */

struct item {
    size_t floats, *offset;
    int begin, end; /* half steps */
    int step;
    bool placed;
};

static int largest_first(const void *one, const void *other)
{
    const struct item *a = *(struct item *const *)one, *b = *(struct item *const *)other;

    if (a->floats != b->floats)
        return a->floats > b->floats ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static bool clash(const struct item *a, const struct item *b, size_t at)
{
    return b != a && b->placed && a->begin < b->end && b->begin < a->end &&
           at < *b->offset + b->floats && *b->offset < at + a->floats;
}

/* Only buffers of the same step and its neighbours live at the same time; `items` has two a step,
 * the second without floats where it is not lent. */
static void place(struct item *items, int steps, struct item *item)
{
    size_t at = 0;
    bool moved;

    do {
        moved = false;
        for (int step = item->step - 1; step <= item->step + 1; step++)
            for (int i = 2 * step; step >= 0 && step < steps && i < 2 * step + 2; i++)
                if (clash(item, &items[i], at)) {
                    at = *items[i].offset + items[i].floats;
                    moved = true;
                }
    } while (moved);
    *item->offset = at;
    item->placed = true;
}

/* A pass over the groups, first to last or last to first. */
static void plan_pass(struct train_pool *pool, const size_t *floats, size_t *weights,
                      size_t *gradients)
{
    int steps = pool->groups;
    struct item *items = base_calloc(2 * (size_t)steps, sizeof *items);
    struct item **order = base_calloc(2 * (size_t)steps, sizeof *order);
    size_t count = 0;

    for (int step = 0; step < steps; step++) {
        int group = gradients != NULL || weights == pool->backward ? steps - 1 - step : step;
        size_t size = (floats[group] + UNIT - 1) / UNIT * UNIT;

        if (weights != NULL)
            items[2 * step] = (struct item){.floats = size,
                                            .offset = &weights[group],
                                            .begin = 2 * step - 1,
                                            .end = 2 * step + 2,
                                            .step = step};
        if (gradients != NULL)
            items[2 * step + 1] = (struct item){.floats = size,
                                                .offset = &gradients[group],
                                                .begin = 2 * step,
                                                .end = 2 * step + 3,
                                                .step = step};
        for (int i = 2 * step; i < 2 * step + 2; i++)
            if (items[i].offset != NULL)
                order[count++] = &items[i];
    }
    qsort(order, count, sizeof *order, largest_first);
    for (size_t i = 0; i < count; i++) {
        place(items, steps, order[i]);
        if (*order[i]->offset + order[i]->floats > pool->floats)
            pool->floats = *order[i]->offset + order[i]->floats;
    }
    base_free(order);
    base_free(items);
}

static void plan_passes(struct train_pool *pool, const size_t *floats)
{
    pool->floats = 0;
    if (pool->forward != NULL)
        plan_pass(pool, floats, pool->forward, NULL);
    plan_pass(pool, floats, pool->backward, pool->gradients);
}

/* Sizes that change from group to group may leave gaps that are too small for the next one. Buffers
 * of equal size leave none. */
void train_pool_plan(struct train_pool *pool, const size_t *floats, int groups, bool weights,
                     bool gradients)
{
    size_t count = (size_t)groups, most = 0, exact;
    size_t *equal = base_calloc(count, sizeof *equal);

    *pool = (struct train_pool){.groups = groups};
    if (weights) {
        pool->forward = base_calloc(count, sizeof *pool->forward);
        pool->backward = base_calloc(count, sizeof *pool->backward);
    }
    if (gradients)
        pool->gradients = base_calloc(count, sizeof *pool->gradients);
    for (size_t i = 0; i < count; i++)
        most = floats[i] > most ? floats[i] : most;
    for (size_t i = 0; i < count; i++)
        equal[i] = most;
    plan_passes(pool, floats);
    exact = pool->floats;
    plan_passes(pool, equal);
    if (exact < pool->floats)
        plan_passes(pool, floats);
    base_free(equal);
}

void train_pool_fini(struct train_pool *pool)
{
    base_free(pool->forward);
    base_free(pool->backward);
    base_free(pool->gradients);
    *pool = (struct train_pool){0};
}
