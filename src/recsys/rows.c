/* SPDX-License-Identifier: MIT
 *
 * Ratings regrouped and selected. Every thread has rows of the result to itself, and finds their
 * ratings in the order of the source, so any number of threads gives the same bytes.
 */
#include <string.h>

#include "base/mem.h"
#include "base/team.h"
#include "recsys/recsys_private.h"

/* Rows that are written to; `to` becomes the result. */
struct regrouping {
    const struct recsys_rows *from;
    struct recsys_rows to;
    uint64_t *start;
    uint32_t *column, *time;
    uint8_t *code;
    float *value;
    uint64_t *next; /* (rows) where the next rating of a row goes */
    uint32_t *cut;  /* (units+1) rows of the units */
    recsys_keep *keep;
    const void *context;
};

static base_status alloc_ratings(struct regrouping *g, bool times)
{
    base_status st = BASE_OK;
    size_t count = (size_t)g->to.count;

    TRY(base_tensor(count, sizeof *g->column, "ratings", &g->column));
    if (g->from->code != NULL)
        TRY(base_tensor(count, sizeof *g->code, "ratings", &g->code));
    else
        TRY(base_tensor(count, sizeof *g->value, "ratings", &g->value));
    if (times && g->from->time != NULL)
        TRY(base_tensor(count, sizeof *g->time, "times of ratings", &g->time));
out:
    return st;
}

static void finish(struct regrouping *g)
{
    g->to.start = g->start;
    g->to.column = g->column;
    g->to.code = g->code;
    g->to.value = g->value;
    g->to.time = g->time;
    base_free(g->next);
    base_free(g->cut);
}

static inline void put(struct regrouping *g, uint64_t to, uint32_t column, uint64_t k)
{
    g->column[to] = column;
    if (g->code != NULL)
        g->code[to] = g->from->code[k];
    else
        g->value[to] = g->from->value[k];
    if (g->time != NULL)
        g->time[to] = g->from->time[k];
}

/* Rows of about equally many ratings for each unit, by where the rows start. */
static void cut_rows(const uint64_t *start, uint32_t rows, int units, uint32_t *cut)
{
    uint32_t row = 0;

    for (int u = 0; u < units; u++) {
        cut[u] = row;
        while (row < rows && start[row] < start[rows] * (uint64_t)(u + 1) / (uint64_t)units)
            row++;
    }
    cut[units] = rows;
}

/* ---- by the other side ---- */

/* Scans all ratings for those of its columns. Where most threads scan what others write, the scan
 * is a small part: a rating is one comparison there and a cache miss here. */
static void transpose_unit(const void *context, int unit, int thread)
{
    struct regrouping *g = (struct regrouping *)(uintptr_t)context;
    const struct recsys_rows *from = g->from;
    uint32_t first = g->cut[unit], count = g->cut[unit + 1] - first;

    (void)thread;
    for (uint32_t row = 0; row < from->rows; row++)
        for (uint64_t k = from->start[row]; k < from->start[row + 1]; k++)
            if (from->column[k] - first < count)
                put(g, g->next[from->column[k]]++, row, k);
}

base_status recsys_transpose(const struct recsys_rows *rows, bool times, int threads,
                             struct recsys_rows *transposed_p)
{
    base_status st = BASE_OK;
    struct regrouping g = {.from = rows};
    struct base_team *team = NULL;

    *transposed_p = (struct recsys_rows){0};
    threads = recsys_threads(threads, rows->count);
    g.to = (struct recsys_rows){.rows = rows->columns, .columns = rows->rows, .count = rows->count};
    TRY(base_team_new(threads, &team));
    TRY(base_tensor((size_t)g.to.rows + 1, sizeof *g.start, "rows", &g.start));
    TRY(base_tensor(g.to.rows, sizeof *g.next, "rows", &g.next));
    TRY(base_tensor((size_t)threads + 1, sizeof *g.cut, "units", &g.cut));
    TRY(alloc_ratings(&g, times));
    for (uint64_t k = 0; k < rows->count; k++)
        g.start[rows->column[k] + 1]++;
    for (uint32_t r = 0; r < g.to.rows; r++)
        g.start[r + 1] += g.start[r];
    memcpy(g.next, g.start, g.to.rows * sizeof *g.next);
    cut_rows(g.start, g.to.rows, threads, g.cut);
    base_team_run(team, threads, transpose_unit, &g);
out:
    finish(&g);
    if (st == BASE_OK)
        *transposed_p = g.to;
    else
        recsys_rows_fini(&g.to);
    base_team_free(team);
    return st;
}

/* ---- some of them ---- */

static void count_unit(const void *context, int unit, int thread)
{
    struct regrouping *g = (struct regrouping *)(uintptr_t)context;

    (void)thread;
    for (uint32_t r = g->cut[unit]; r < g->cut[unit + 1]; r++)
        for (uint64_t k = g->from->start[r]; k < g->from->start[r + 1]; k++)
            g->next[r] += g->keep(g->context, r, k);
}

static void select_unit(const void *context, int unit, int thread)
{
    struct regrouping *g = (struct regrouping *)(uintptr_t)context;

    (void)thread;
    for (uint32_t r = g->cut[unit]; r < g->cut[unit + 1]; r++) {
        uint64_t to = g->start[r];

        for (uint64_t k = g->from->start[r]; k < g->from->start[r + 1]; k++)
            if (g->keep(g->context, r, k))
                put(g, to++, g->from->column[k], k);
    }
}

base_status recsys_select(const struct recsys_rows *rows, recsys_keep *keep, const void *context,
                          int threads, struct recsys_rows *selected_p)
{
    base_status st = BASE_OK;
    struct regrouping g = {.from = rows, .keep = keep, .context = context};
    struct base_team *team = NULL;
    int units;

    *selected_p = (struct recsys_rows){0};
    threads = recsys_threads(threads, rows->count);
    units = 4 * threads;
    g.to = (struct recsys_rows){.rows = rows->rows, .columns = rows->columns};
    TRY(base_team_new(threads, &team));
    TRY(base_tensor((size_t)rows->rows + 1, sizeof *g.start, "rows", &g.start));
    TRY(base_tensor(rows->rows, sizeof *g.next, "rows", &g.next));
    TRY(base_tensor((size_t)units + 1, sizeof *g.cut, "units", &g.cut));
    cut_rows(rows->start, rows->rows, units, g.cut);
    base_team_run(team, units, count_unit, &g);
    for (uint32_t r = 0; r < rows->rows; r++)
        g.start[r + 1] = g.start[r] + g.next[r];
    g.to.count = g.start[rows->rows];
    TRY(alloc_ratings(&g, true));
    base_team_run(team, units, select_unit, &g);
out:
    finish(&g);
    if (st == BASE_OK)
        *selected_p = g.to;
    else
        recsys_rows_fini(&g.to);
    base_team_free(team);
    return st;
}

void recsys_rows_fini(struct recsys_rows *rows)
{
    base_free((void *)(uintptr_t)rows->start);
    base_free((void *)(uintptr_t)rows->column);
    base_free((void *)(uintptr_t)rows->code);
    base_free((void *)(uintptr_t)rows->value);
    base_free((void *)(uintptr_t)rows->time);
    *rows = (struct recsys_rows){0};
}
