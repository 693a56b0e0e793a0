/* SPDX-License-Identifier: MIT */
#include "support/rated.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

static int in_order(const void *a, const void *b)
{
    const struct rated_one *x = a, *y = b;

    if (x->user != y->user)
        return x->user < y->user ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* One grouping of those ratings whose test[k] is `wanted`. */
static void group(struct recsys_rows *rows, const struct recsys_scale *scale,
                  const struct rated_one *all, uint64_t count, const bool *test, bool wanted,
                  bool by_item, uint32_t row_count, uint32_t columns)
{
    uint64_t *start = base_calloc(row_count + 2u, sizeof *start);
    uint32_t *column = base_calloc(count + 1, sizeof *column);
    uint32_t *time = base_calloc(count + 1, sizeof *time);
    uint8_t *code = base_calloc(count + 1, 1);

    for (uint64_t k = 0; k < count; k++)
        if ((test != NULL && test[k]) == wanted)
            start[(by_item ? all[k].item : all[k].user) + 2]++;
    for (uint32_t r = 0; r < row_count; r++)
        start[r + 2] += start[r + 1];
    for (uint64_t k = 0; k < count; k++)
        if ((test != NULL && test[k]) == wanted) {
            const uint64_t at = start[(by_item ? all[k].item : all[k].user) + 1]++;

            column[at] = by_item ? all[k].user : all[k].item;
            time[at] = all[k].time;
            code[at] = (uint8_t)lroundf((all[k].value - scale->lowest) / scale->step);
        }
    *rows = (struct recsys_rows){.rows = row_count,
                                 .columns = columns,
                                 .count = start[row_count],
                                 .start = start,
                                 .column = column,
                                 .code = code,
                                 .time = time};
}

void rated_init(struct rated *rated, uint32_t users, uint32_t items, struct rated_one *all,
                uint64_t count, const bool *test)
{
    struct recsys_scale *scale = &rated->scale;

    *scale = (struct recsys_scale){.lowest = 0.5f, .highest = 5, .step = 0.5f, .levels = 10};
    for (uint32_t l = 0; l < scale->levels; l++)
        scale->level[l] = 0.5f * (float)(l + 1);
    qsort(all, count, sizeof *all, in_order);
    group(&rated->by_user, scale, all, count, test, false, false, users, items);
    group(&rated->by_item, scale, all, count, test, false, true, items, users);
    group(&rated->test, scale, all, count, test, true, false, users, items);
}

/* In (-1, 1). */
static float value_of(uint32_t what, uint32_t row, uint32_t index)
{
    const struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, what, 0, row);

    return 2 * base_rng_unit(base_rng_u32(&rng, index)) - 1;
}

static float rating_of(uint32_t u, uint32_t i)
{
    float r = 3.4f + 0.6f * value_of(1, u, 0) + 0.9f * value_of(2, i, 0) + 0.4f * value_of(3, u, i);

    for (uint32_t f = 1; f <= 3; f++)
        r += 0.9f * value_of(1, u, f) * value_of(2, i, f);
    r = roundf(2 * r) / 2;
    return r < 0.5f ? 0.5f : r > 5 ? 5 : r;
}

void rated_make(struct rated *rated, uint32_t users, uint32_t items, uint32_t each)
{
    struct rated_one *all = base_calloc((size_t)users * items, sizeof *all);
    bool *test = base_calloc((size_t)users * items, sizeof *test);
    uint64_t count = 0;

    for (uint32_t u = 0; u < users; u++)
        for (uint32_t i = 0; i < items; i++) {
            const float draw = value_of(4, u, i) + 1; /* popular items come first */
            const float chance =
                2 * (float)each / (float)items * 2 / (1 + 3 * (float)i / (float)items);

            if (draw >= chance)
                continue;
            test[count] = value_of(5, u, i) < -0.6f;
            all[count++] =
                (struct rated_one){u, i, 86400 * (10 + (u * 31 + i) % 200), rating_of(u, i)};
        }
    rated_init(rated, users, items, all, count, test);
    base_free(all);
    base_free(test);
}

static void fini_rows(struct recsys_rows *rows)
{
    base_free((void *)(uintptr_t)rows->start);
    base_free((void *)(uintptr_t)rows->column);
    base_free((void *)(uintptr_t)rows->code);
    base_free((void *)(uintptr_t)rows->time);
}

void rated_fini(struct rated *rated)
{
    fini_rows(&rated->by_user);
    fini_rows(&rated->by_item);
    fini_rows(&rated->test);
}
