/* SPDX-License-Identifier: MIT */
#include "recsys/cells.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "recsys/model_private.h"

enum { BATCH = 8, SPARE = 64 }; /* entries that may be read past the last */

/* ---- items ---- */

struct popular {
    uint64_t count;
    uint32_t item;
};

static int by_popularity(const void *a, const void *b)
{
    const struct popular *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* The most popular items go to the groups in turn, there and back again. */
static void deal_items(struct recsys_cells *c, const struct recsys_fit *fit)
{
    struct popular *order = base_calloc(fit->items, sizeof *order);
    const uint32_t groups = c->shape.groups;

    for (uint32_t i = 0; i < fit->items; i++)
        order[i] = (struct popular){fit->item_counts[i], i};
    qsort(order, fit->items, sizeof *order, by_popularity);
    for (uint32_t x = 0; x < fit->items; x++) {
        const uint32_t round = x / groups, turn = x % groups;
        const uint32_t group = round % 2 == 0 ? turn : groups - 1 - turn;

        c->place[order[x].item] = group * (c->group_rows + 1) + round;
        c->item_counts[c->place[order[x].item]] = (float)order[x].count;
    }
    base_free(order);
}

/* ---- codes ---- */

enum { CODES = 255, WIDE = 5, WIDTH = 4 };

/* Codes 1 … are steps of the scale, or of the finest even one where it has none or too many. Steps
 * of gradient descent are as long as ratings are large: wide scales are brought to that of stars,
 * for which rates of learning are meant. */
void recsys_cells_scale(struct recsys_cells *c, const struct recsys_fit *fit)
{
    const struct recsys_scale *scale = fit->scale;
    const double lowest = (double)scale->lowest, range = (double)scale->highest - lowest;
    const bool steps = scale->step > 0 && range / (double)scale->step < CODES - 0.5;
    const double step = steps ? (double)scale->step : range > 0 ? range / (CODES - 1) : 1;

    c->unit = range <= WIDE ? 1 : (float)(range / WIDTH);
    c->scale = (float)(step / (double)c->unit);
    c->offset = (float)((lowest - step - (double)fit->mean) / (double)c->unit);
}

static uint8_t code_of(const struct recsys_cells *c, const struct recsys_fit *fit, float rating)
{
    const double value = (double)rating - (double)fit->mean;

    return (uint8_t)lrint((value / (double)c->unit - (double)c->offset) / (double)c->scale);
}

/* ---- users ---- */

struct layout {
    struct recsys_cells *cells;
    const struct recsys_fit *fit;
    uint8_t *group;                  /* (items) */
    uint16_t *row;                   /* (items) in the group */
    uint8_t code[RECSYS_MAX_LEVELS]; /* of each level */
    uint32_t *order;                 /* (users of the shape) */
    uint32_t *segment;               /* (rotations * stripes + 1) where each begins in the order */
    uint64_t *padded;                /* of each cell: ratings, and then where they begin */
    uint64_t *runs;
};

/* Users at random, cut into segments of about as many ratings. */
static void deal_users(struct layout *l)
{
    const struct recsys_fit *fit = l->fit;
    const struct recsys_shape *shape = &l->cells->shape;
    const uint32_t segments = shape->rotations * shape->stripes, users = shape->to - shape->from;
    const uint64_t *start = fit->by_user->start;
    const uint64_t count = start[shape->to] - start[shape->from];
    const struct base_rng rng = base_rng_of(fit->seed, BASE_STREAM_SHUFFLE, 2, 0, 0);
    uint64_t dealt = 0;
    uint32_t s = 0;

    for (uint32_t u = 0; u < users; u++)
        l->order[u] = shape->from + u;
    base_rng_shuffle(&rng, l->order, users);
    for (uint32_t x = 0; x < users; x++) {
        for (; s < segments && dealt * segments >= count * s; s++)
            l->segment[s] = x;
        dealt += recsys_row_count(fit->by_user, l->order[x]);
    }
    for (; s <= segments; s++)
        l->segment[s] = users;
}

/* What is asked for each rating, found once. */
static base_status prepare_tables(struct layout *l)
{
    base_status st = BASE_OK;
    const struct recsys_cells *c = l->cells;
    const struct recsys_scale *scale = l->fit->scale;

    static_assert(RECSYS_MOST_GROUPS - 1 <= UINT8_MAX);
    TRY(base_tensor(l->fit->items, sizeof *l->group, "groups of items", &l->group));
    TRY(base_tensor(l->fit->items, sizeof *l->row, "rows of items", &l->row));
    for (uint32_t i = 0; i < l->fit->items; i++) {
        l->group[i] = (uint8_t)(c->place[i] / (c->group_rows + 1));
        l->row[i] = (uint16_t)(c->place[i] % (c->group_rows + 1));
    }
    for (uint32_t level = 0; level < scale->levels; level++)
        l->code[level] = code_of(c, l->fit, scale->level[level]);
out:
    return st;
}

static uint64_t rounded_up(uint64_t count)
{
    return (count + BATCH - 1) / BATCH * BATCH;
}

static void measure_segment(const void *context, int unit, int thread)
{
    const struct layout *l = context;
    const uint32_t groups = l->cells->shape.groups;
    const struct recsys_rows *rows = l->fit->by_user;

    (void)thread;
    for (uint32_t x = l->segment[unit]; x < l->segment[unit + 1]; x++) {
        const uint32_t user = l->order[x];
        uint32_t count[RECSYS_MOST_GROUPS];

        memset(count, 0, groups * sizeof *count);
        for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++)
            count[l->group[rows->column[k]]]++;
        for (uint32_t g = 0; g < groups; g++) {
            l->runs[(uint32_t)unit * groups + g] += count[g] > 0;
            l->padded[(uint32_t)unit * groups + g] += rounded_up(count[g]);
        }
    }
}

/* A user's ratings, each to the end of its group's cell. */
static void fill_user(const struct layout *l, uint32_t user, uint64_t *at)
{
    const struct recsys_rows *rows = l->fit->by_user;
    uint16_t *items = l->cells->items;
    uint8_t *codes = l->cells->codes;

    for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++) {
        const uint32_t item = rows->column[k];
        const uint64_t to = at[l->group[item]]++;

        items[to] = l->row[item];
        codes[to] =
            rows->code != NULL ? l->code[rows->code[k]] : code_of(l->cells, l->fit, rows->value[k]);
    }
}

/* Segment s is rotation s / stripes of stripe s % stripes, so that its cells lie side by side. */
static void fill_segment(const void *context, int unit, int thread)
{
    const struct layout *l = context;
    struct recsys_cells *c = l->cells;
    const uint32_t groups = c->shape.groups;
    uint64_t at[RECSYS_MOST_GROUPS], begin[RECSYS_MOST_GROUPS], run[RECSYS_MOST_GROUPS];

    (void)thread;
    memcpy(at, l->padded + (uint32_t)unit * groups, groups * sizeof *at);
    memcpy(run, l->runs + (uint32_t)unit * groups, groups * sizeof *run);
    for (uint32_t x = l->segment[unit]; x < l->segment[unit + 1]; x++) {
        memcpy(begin, at, groups * sizeof *at);
        fill_user(l, l->order[x], at);
        for (uint32_t g = 0; g < groups; g++) {
            const uint64_t count = at[g] - begin[g];

            if (count > 0)
                ((struct recsys_run *)c->runs)[run[g]++] =
                    (struct recsys_run){l->order[x] - c->shape.from, (uint32_t)count};
            for (; at[g] < begin[g] + rounded_up(count); at[g]++) {
                ((uint8_t *)c->codes)[at[g]] = 0;
                ((uint16_t *)c->items)[at[g]] = (uint16_t)c->group_rows;
            }
        }
    }
}

/* ---- cells ---- */

/* Sizes become places, and cells point there. */
static base_status place_cells(struct layout *l)
{
    base_status st = BASE_OK;
    struct recsys_cells *c = l->cells;
    const uint32_t cells = c->shape.rotations * c->shape.stripes * c->shape.groups;
    uint64_t padded = 0, runs = 0;

    for (uint32_t i = 0; i < cells; i++) {
        const uint64_t ratings = l->padded[i], users = l->runs[i];

        c->cell[i].run_count = (uint32_t)users;
        l->padded[i] = padded;
        l->runs[i] = runs;
        padded += ratings;
        runs += users;
    }
    TRY(base_tensor_unset(padded + SPARE, sizeof(uint16_t), "items of ratings", &c->items));
    TRY(base_tensor_unset(padded + SPARE, 1, "codes of ratings", &c->codes));
    TRY(base_tensor_unset(runs + 1, sizeof(struct recsys_run), "users of ratings", &c->runs));
    memset((uint16_t *)c->items + padded, 0, SPARE * sizeof(uint16_t));
    memset((uint8_t *)c->codes + padded, 0, SPARE);
    for (uint32_t i = 0; i < cells; i++) {
        c->cell[i].runs = (struct recsys_run *)c->runs + l->runs[i];
        c->cell[i].item = (uint16_t *)c->items + l->padded[i];
        c->cell[i].code = (uint8_t *)c->codes + l->padded[i];
    }
out:
    return st;
}

static void summarise(struct layout *l)
{
    struct recsys_cells *c = l->cells;

    for (uint32_t s = 0; s < c->shape.rotations * c->shape.stripes; s++) {
        uint64_t count = 0;

        for (uint32_t g = 0; g < c->shape.groups; g++) {
            const struct recsys_cell *cell = &c->cell[s * c->shape.groups + g];

            for (uint32_t r = 0; r < cell->run_count; r++) {
                count += cell->runs[r].count;
                c->longest = cell->runs[r].count > c->longest ? cell->runs[r].count : c->longest;
            }
        }
        c->share[s] = (float)count / (float)l->fit->by_user->count;
    }
}

base_status recsys_cells_init(struct recsys_cells *cells, const struct recsys_fit *fit,
                              const struct recsys_shape *shape)
{
    base_status st = BASE_OK;
    struct layout l = {.cells = cells, .fit = fit};
    const uint32_t segments = shape->rotations * shape->stripes;
    const size_t count = (size_t)segments * shape->groups;

    *cells = (struct recsys_cells){.shape = *shape,
                                   .group_rows = (fit->items + shape->groups - 1) / shape->groups};
    if (shape->groups > RECSYS_MOST_GROUPS || cells->group_rows >= UINT16_MAX)
        TRY(base_fail(BASE_ERR_USAGE,
                      "%u items do not fit %u groups; there are at most %d groups of %d items",
                      fit->items, shape->groups, RECSYS_MOST_GROUPS, UINT16_MAX - 1));
    TRY(base_tensor(fit->items, sizeof *cells->place, "places of items", &cells->place));
    TRY(base_tensor((size_t)shape->groups * (cells->group_rows + 1), sizeof(float),
                    "counts of items", &cells->item_counts));
    TRY(base_tensor(count, sizeof *cells->cell, "cells", &cells->cell));
    TRY(base_tensor(segments, sizeof(float), "cells", &cells->share));
    TRY(base_tensor(shape->to - shape->from, sizeof *l.order, "an order of users", &l.order));
    TRY(base_tensor(segments + 1, sizeof *l.segment, "cells", &l.segment));
    TRY(base_tensor(count, sizeof *l.padded, "cells", &l.padded));
    TRY(base_tensor(count, sizeof *l.runs, "cells", &l.runs));
    recsys_cells_scale(cells, fit);
    deal_items(cells, fit);
    TRY(prepare_tables(&l));
    deal_users(&l);
    base_team_run(fit->team, (int)segments, measure_segment, &l);
    TRY(place_cells(&l));
    base_team_run(fit->team, (int)segments, fill_segment, &l);
    summarise(&l);
out:
    base_free(l.group);
    base_free(l.row);
    base_free(l.order);
    base_free(l.segment);
    base_free(l.padded);
    base_free(l.runs);
    return st;
}

void recsys_cells_fini(struct recsys_cells *cells)
{
    base_free(cells->place);
    base_free(cells->item_counts);
    base_free(cells->cell);
    base_free(cells->share);
    base_free(cells->runs);
    base_free(cells->items);
    base_free(cells->codes);
}
