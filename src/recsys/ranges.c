/* SPDX-License-Identifier: MIT
 *
 * Rows divided by their work, and the ratings of a row as floats.
 */
#include "recsys/model_private.h"

enum {
    RANGES = 128,     /* enough that threads end together */
    ROW_RATINGS = 32, /* what a row costs besides its ratings, in ratings */
    WHOLE = 8,        /* ranges begin at multiples: models take eight rows at a time */
};

struct ranges {
    const uint64_t *work;
    uint32_t from, to;
    uint32_t count;
    recsys_range_task *task;
    const void *context;
};

static uint64_t work_before(const struct ranges *r, uint32_t row)
{
    const uint64_t rows = (uint64_t)(row - r->from);

    return r->work == NULL ? rows : r->work[row] - r->work[r->from] + rows * ROW_RATINGS;
}

/* Where range `index` begins: the first row with that much work before it. */
static uint32_t range_from(const struct ranges *r, uint32_t index)
{
    const uint64_t wanted = work_before(r, r->to) / r->count * index;
    uint32_t low = r->from, high = r->to;

    if (index == 0 || index == r->count)
        return index == 0 ? r->from : r->to;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (work_before(r, middle) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return r->from + (low - r->from) / WHOLE * WHOLE;
}

static void run_range(const void *context, int unit, int thread)
{
    const struct ranges *r = context;
    const uint32_t from = range_from(r, (uint32_t)unit), to = range_from(r, (uint32_t)unit + 1);

    if (from < to)
        r->task(r->context, from, to, thread);
}

void recsys_each_range(struct base_team *team, const uint64_t *work, uint32_t from, uint32_t to,
                       recsys_range_task *task, const void *context)
{
    const uint32_t most = (to - from + WHOLE - 1) / WHOLE;
    const struct ranges r = {work, from, to, most < RANGES ? most : RANGES, task, context};

    base_team_run(team, (int)r.count, run_range, &r);
}

void recsys_cut_rows(const uint64_t *start, uint32_t rows, int units, uint32_t *cut)
{
    uint32_t row = 0;

    for (int u = 0; u < units; u++) {
        cut[u] = row;
        while (row < rows && start[row] < start[rows] * (uint64_t)(u + 1) / (uint64_t)units)
            row++;
    }
    cut[units] = rows;
}

/* Sums over columns must not take more time and memory than the ratings that they are of. */
struct recsys_units recsys_units_of(const struct recsys_rows *rows)
{
    const uint64_t useful = rows->count / (4 * ((uint64_t)rows->columns + 1)) + 1;
    struct recsys_units units = {.count =
                                     useful < RECSYS_MAX_UNITS ? (int)useful : RECSYS_MAX_UNITS};

    recsys_cut_rows(rows->start, rows->rows, units.count, units.cut);
    return units;
}

void recsys_values(const struct recsys_scale *scale, const struct recsys_rows *rows, uint64_t from,
                   int count, float minus, float *values)
{
    if (rows->code != NULL)
        for (int j = 0; j < count; j++)
            values[j] = scale->level[rows->code[from + (uint64_t)j]] - minus;
    else
        for (int j = 0; j < count; j++)
            values[j] = rows->value[from + (uint64_t)j] - minus;
}
