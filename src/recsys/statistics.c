/* SPDX-License-Identifier: MIT */
#include "recsys/statistics.h"

#include <stdlib.h>

#include "base/mem.h"

static int by_count(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Sorts `degree`. */
static struct recsys_degrees degrees_of(uint64_t *degree, uint32_t count, uint64_t ratings)
{
    struct recsys_degrees d = {.mean = (double)ratings / count};

    qsort(degree, count, sizeof *degree, by_count);
    d.least = degree[0];
    d.median = degree[count / 2];
    d.most = degree[count - 1];
    for (uint32_t i = 0; i < count; i++) {
        int bin = degree[i] > 0 ? 63 - __builtin_clzll(degree[i]) : 0;

        bin = bin < RECSYS_BINS ? bin : RECSYS_BINS - 1;
        d.bin[bin]++;
        d.bins = bin >= d.bins ? bin + 1 : d.bins;
    }
    return d;
}

static void count_values(const struct recsys_ratings *r, struct recsys_statistics *s)
{
    const double lowest = (double)r->scale.lowest;
    const double width = ((double)r->scale.highest - lowest) / RECSYS_VALUE_BINS;
    double sum = 0;

    s->counts = r->scale.levels > 0 ? (int)r->scale.levels : RECSYS_VALUE_BINS;
    for (uint64_t k = 0; k < r->count && r->by_user.code != NULL; k++)
        s->count[r->by_user.code[k]]++;
    for (uint32_t i = 0; i < r->scale.levels; i++)
        sum += (double)r->scale.level[i] * (double)s->count[i];
    for (uint64_t k = 0; k < r->count && r->by_user.value != NULL; k++) {
        int bin = width > 0 ? (int)(((double)r->by_user.value[k] - lowest) / width) : 0;

        s->count[bin < RECSYS_VALUE_BINS ? bin : RECSYS_VALUE_BINS - 1]++;
        sum += (double)r->by_user.value[k];
    }
    s->mean = sum / (double)r->count;
}

base_status recsys_statistics(const struct recsys_ratings *r, struct recsys_statistics *s)
{
    base_status st = BASE_OK;
    uint64_t *users = NULL, *items = NULL;

    *s = (struct recsys_statistics){0};
    TRY(base_tensor(r->users, sizeof *users, "users", &users));
    TRY(base_tensor(r->items, sizeof *items, "items", &items));
    for (uint32_t u = 0; u < r->users; u++)
        users[u] = r->by_user.start[u + 1] - r->by_user.start[u];
    for (uint64_t k = 0; k < r->count; k++)
        items[r->by_user.column[k]]++;
    s->users = degrees_of(users, r->users, r->count);
    s->items = degrees_of(items, r->items, r->count);
    s->density = (double)r->count / ((double)r->users * (double)r->items);
    count_values(r, s);
out:
    base_free(users);
    base_free(items);
    return st;
}
