/* SPDX-License-Identifier: MIT
 *
 * Ratings regrouped and dealt to parts. Every thread has rows of the result to itself, and finds
 * their ratings in the order of the source, so any number of threads gives the same bytes.
 */
#include <string.h>

#include "base/mem.h"
#include "base/team.h"
#include "recsys/model_private.h"
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
};

static base_status alloc_ratings(struct regrouping *g, bool times)
{
    base_status st = BASE_OK;
    size_t count = (size_t)g->to.count;

    TRY(base_tensor_unset(count, sizeof *g->column, "ratings", &g->column));
    if (g->from->code != NULL)
        TRY(base_tensor_unset(count, sizeof *g->code, "ratings", &g->code));
    else
        TRY(base_tensor_unset(count, sizeof *g->value, "ratings", &g->value));
    if (times && g->from->time != NULL)
        TRY(base_tensor_unset(count, sizeof *g->time, "times of ratings", &g->time));
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
    recsys_cut_rows(g.start, g.to.rows, threads, g.cut);
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

/* ---- in parts ---- */

struct dealing {
    const struct recsys_rows *from;
    recsys_dealer *dealer;
    const void *context;
    struct regrouping part[RECSYS_MAX_PARTS];
    int count;
    uint32_t *cut;    /* (units+1) */
    uint8_t *part_of; /* (threads, columns) of the ratings of a row; a pair is there once */
};

static uint8_t *ask_dealer(const struct dealing *d, uint32_t row, int thread)
{
    uint8_t *part_of = d->part_of + (size_t)thread * d->from->columns;

    d->dealer(d->context, row, part_of);
    return part_of;
}

static void count_unit(const void *context, int unit, int thread)
{
    const struct dealing *d = context;

    for (uint32_t r = d->cut[unit]; r < d->cut[unit + 1]; r++) {
        const uint64_t count = d->from->start[r + 1] - d->from->start[r];
        const uint8_t *part_of = ask_dealer(d, r, thread);
        uint64_t of[RECSYS_MAX_PARTS + 1] = {0};

        for (uint64_t k = 0; k < count; k++)
            of[part_of[k]]++;
        for (int p = 0; p < d->count; p++)
            d->part[p].start[r + 1] = of[p];
    }
}

static void deal_unit(const void *context, int unit, int thread)
{
    struct dealing *d = (struct dealing *)(uintptr_t)context;

    for (uint32_t r = d->cut[unit]; r < d->cut[unit + 1]; r++) {
        const uint8_t *part_of = ask_dealer(d, r, thread);
        uint64_t to[RECSYS_MAX_PARTS] = {0};

        for (int p = 0; p < d->count; p++)
            to[p] = d->part[p].start[r];
        for (uint64_t k = d->from->start[r]; k < d->from->start[r + 1]; k++, part_of++)
            if (*part_of != RECSYS_NO_PART)
                put(&d->part[*part_of], to[*part_of]++, d->from->column[k], k);
    }
}

/* Counts of rows become where they begin. */
static base_status make_room(struct dealing *d, bool times)
{
    base_status st = BASE_OK;

    for (int p = 0; p < d->count; p++) {
        struct regrouping *g = &d->part[p];

        for (uint32_t r = 0; r < d->from->rows; r++)
            g->start[r + 1] += g->start[r];
        g->to.count = g->start[d->from->rows];
        TRY(alloc_ratings(g, times));
    }
out:
    return st;
}

base_status recsys_deal(const struct recsys_rows *rows, recsys_dealer *dealer, const void *context,
                        bool times, int threads, int count, struct recsys_rows *parts_p)
{
    base_status st = BASE_OK;
    struct dealing d = {.from = rows, .dealer = dealer, .context = context, .count = count};
    struct base_team *team = NULL;
    int units;

    threads = recsys_threads(threads, rows->count);
    units = 4 * threads;
    for (int p = 0; p < count; p++) {
        parts_p[p] = (struct recsys_rows){0};
        d.part[p].from = rows;
        d.part[p].to = (struct recsys_rows){.rows = rows->rows, .columns = rows->columns};
        TRY(base_tensor((size_t)rows->rows + 1, sizeof(uint64_t), "rows", &d.part[p].start));
    }
    TRY(base_team_new(threads, &team));
    TRY(base_tensor((size_t)units + 1, sizeof *d.cut, "units", &d.cut));
    TRY(base_tensor((size_t)threads * rows->columns, 1, "parts of a row", &d.part_of));
    recsys_cut_rows(rows->start, rows->rows, units, d.cut);
    base_team_run(team, units, count_unit, &d);
    TRY(make_room(&d, times));
    base_team_run(team, units, deal_unit, &d);
out:
    for (int p = 0; p < count; p++) {
        finish(&d.part[p]);
        if (st == BASE_OK)
            parts_p[p] = d.part[p].to;
        else
            recsys_rows_fini(&d.part[p].to);
    }
    base_free(d.cut);
    base_free(d.part_of);
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
