/* SPDX-License-Identifier: MIT */
#include "recsys/pairs.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "data/format.h"
#include "data/table.h"

enum { USER, ITEM, RATING, CELLS }; /* of a row */
static_assert((int)CELLS <= (int)DATA_ROOM);

struct pairs {
    struct data_table table;
    char *target; /* its name */
    const struct recsys_scale *scale;
    const struct recsys_rows *parts[DATA_PARTS];
};

/* The user who gave rating k. */
static uint32_t pairs_user(const struct recsys_rows *rows, uint64_t k)
{
    uint32_t low = 0, high = rows->rows; /* start[low] <= k < start[high] */

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (rows->start[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static const double *pairs_cells(const void *state, enum data_part part, uint32_t index,
                                 double room[DATA_ROOM])
{
    const struct pairs *p = state;
    const struct recsys_rows *rows = p->parts[part];

    room[USER] = pairs_user(rows, index);
    room[ITEM] = rows->column[index];
    room[RATING] = (double)recsys_value(p->scale, rows, index);
    return room;
}

static void pairs_close(void *state)
{
    struct pairs *p = state;

    if (p == NULL)
        return;
    data_table_fini(&p->table);
    base_free(p);
}

static const struct data_format pairs_format = {
    .name = "ratings",
    .help = "pairs of a user and an item",
    .cells = pairs_cells,
    .close = pairs_close,
};

static struct pairs *pairs_new(const struct recsys_ratings *ratings,
                               const struct recsys_division *parts)
{
    struct pairs *p = base_calloc(1, sizeof *p);

    p->scale = &ratings->scale;
    p->parts[DATA_TRAIN] = &parts->by_user;
    p->parts[DATA_TEST] = &parts->test;
    p->table.columns = base_calloc(RATING, sizeof *p->table.columns);
    p->table.columns[USER].name = base_strdup("user");
    p->table.columns[ITEM].name = base_strdup("item");
    p->table.column_count = p->table.features = RATING;
    p->table.target = (struct data_column){.name = base_strdup("rating"),
                                           .lowest = (double)ratings->scale.lowest,
                                           .highest = (double)ratings->scale.highest};
    p->target = p->table.target.name;
    return p;
}

base_status recsys_pairs_open(const char *name, const struct recsys_ratings *ratings,
                              const struct recsys_division *parts,
                              const struct data_options *options, struct data_set **set_p)
{
    /* Numbers of rows are no quantities: they stay as they are. */
    const struct data_options own = {
        .validation = options->validation, .seed = options->seed, .unit_range = true};
    struct pairs *p = pairs_new(ratings, parts);
    struct data_source source = {
        .state = p,
        .channels = RATING,
        .height = 1,
        .width = 1,
        .classes = 1,
        .table = &p->table,
        .class_names = &p->target,
        .count = {(uint32_t)parts->by_user.count, (uint32_t)parts->test.count}};

    memcpy(source.digest, ratings->digest, sizeof source.digest);
    return data_open_source(name, &pairs_format, &source, &own, set_p);
}
