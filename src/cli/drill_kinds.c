/* SPDX-License-Identifier: MIT
 *
 * The drill's operations. Values are small integers, so sums are exact in any order and the right
 * result is known without a message.
 */
#include "base/mem.h"
#include "cli/drill.h"
#include "comm/engine.h"

static float value(int rank, unsigned turn, size_t i)
{
    return (float)(((size_t)rank * 31 + (size_t)turn * 7 + i) % 97);
}

static float sum(int size, unsigned turn, size_t i)
{
    float s = 0;

    for (int r = 0; r < size; r++)
        s += value(r, turn, i);
    return s;
}

static void fill(float *x, size_t floats, int rank, unsigned turn)
{
    for (size_t i = 0; i < floats; i++)
        x[i] = value(rank, turn, i);
}

static base_status wrong(const char *what, float got, float wanted, size_t i, unsigned turn)
{
    return base_fail(BASE_ERR_INTERNAL, "%s %u is wrong: value %zu is %g instead of %g", what, turn,
                     i, (double)got, (double)wanted);
}

static base_status expect_of(const char *what, const float *x, size_t floats, int rank,
                             unsigned turn)
{
    for (size_t i = 0; i < floats; i++)
        if (x[i] != value(rank, turn, i))
            return wrong(what, x[i], value(rank, turn, i), i, turn);
    return BASE_OK;
}

/* Checks that x has the sums from `offset` on. */
static base_status expect_sum(const char *what, const float *x, size_t offset, size_t floats,
                              int size, unsigned turn)
{
    for (size_t i = 0; i < floats; i++)
        if (x[i] != sum(size, turn, offset + i))
            return wrong(what, x[i], sum(size, turn, offset + i), offset + i, turn);
    return BASE_OK;
}

/* Checks all (size, floats), which has each rank's numbers. */
static base_status expect_all(const char *what, const struct cli_drill_work *w, size_t floats,
                              unsigned turn)
{
    base_status st = BASE_OK;

    for (int r = 0; r < w->size; r++)
        TRY(expect_of(what, w->all + (size_t)r * floats, floats, r, turn));
out:
    return st;
}

static base_status broadcast(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    int root = (int)(turn % (unsigned)w->size);
    base_status st = BASE_OK;

    fill(w->x, floats, w->rank, turn);
    TRY(coll_broadcast(w->coll, root, w->x, floats * sizeof(float)));
    TRY(expect_of("broadcast", w->x, floats, root, turn));
out:
    return st;
}

static base_status gather(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    int root = (int)(turn % (unsigned)w->size);
    base_status st = BASE_OK;

    fill(w->x, floats, w->rank, turn);
    TRY(coll_gather(w->coll, root, w->x, floats * sizeof(float), w->rank == root ? w->all : NULL));
    if (w->rank == root)
        TRY(expect_all("gather", w, floats, turn));
out:
    return st;
}

static base_status scatter(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    int root = (int)(turn % (unsigned)w->size);
    base_status st = BASE_OK;

    for (int r = 0; r < w->size && w->rank == root; r++)
        fill(w->all + (size_t)r * floats, floats, r, turn);
    TRY(coll_scatter(w->coll, root, w->rank == root ? w->all : NULL, floats * sizeof(float), w->x));
    TRY(expect_of("scatter", w->x, floats, w->rank, turn));
out:
    return st;
}

static base_status all_gather(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    base_status st = BASE_OK;

    fill(w->x, floats, w->rank, turn);
    TRY(coll_all_gather(w->coll, w->x, floats * sizeof(float), w->all));
    TRY(expect_all("all-gather", w, floats, turn));
out:
    return st;
}

static base_status reduce_scatter(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    size_t offset, count;
    base_status st = BASE_OK;

    fill(w->x, floats, w->rank, turn);
    coll_slice(floats, w->rank, w->size, &offset, &count);
    TRY(coll_reduce_scatter(w->coll, w->x, floats, NULL));
    TRY(expect_sum("reduce-scatter", w->x + offset, offset, count, w->size, turn));
out:
    return st;
}

static base_status all_reduce(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    base_status st = BASE_OK;

    fill(w->x, floats, w->rank, turn);
    TRY(coll_all_reduce(w->coll, w->x, floats, NULL));
    TRY(expect_sum("all-reduce", w->x, 0, floats, w->size, turn));
out:
    return st;
}

static base_status barrier(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    (void)floats;
    (void)turn;
    return coll_barrier(w->coll);
}

static base_status space(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    float *result;
    base_status st = BASE_OK;

    TRY(cli_drill_space_room(w, floats));
    fill(coll_space_mine(w->space), floats, w->rank, turn);
    TRY(coll_space_all_reduce(w->coll, w->space, 0, floats, NULL, &result));
    TRY(expect_sum("all-reduce of a space", result, 0, floats, w->size, turn));
out:
    return st;
}

/* Two operations, one on each half, are under way at once. */
static base_status async(struct cli_drill_work *w, size_t floats, unsigned turn)
{
    size_t half = floats / 2;
    uint64_t tickets[2];
    float *result;
    bool begun = false;
    base_status st = BASE_OK, ended;

    TRY(cli_drill_space_room(w, floats));
    fill(coll_space_mine(w->space), floats, w->rank, turn);
    TRY(comm_engine_begin(coll_group(w->coll)));
    begun = true;
    TRY(coll_start_all_reduce(w->coll, w->space, 0, half, NULL, &tickets[0]));
    TRY(coll_start_all_reduce(w->coll, w->space, half, floats - half, NULL, &tickets[1]));
    TRY(coll_async_wait(w->coll, tickets[0], &result));
    TRY(expect_sum("asynchronous all-reduce", result, 0, half, w->size, turn));
    TRY(coll_async_wait(w->coll, tickets[1], &result));
    TRY(expect_sum("asynchronous all-reduce", result, half, floats - half, w->size, turn));
out:
    if (begun) {
        ended = comm_engine_end(coll_group(w->coll));
        st = st == BASE_OK ? ended : st;
    }
    return st;
}

const struct cli_drill_kind cli_drill_kinds[] = {
    {"broadcast", broadcast},   {"gather", gather},
    {"scatter", scatter},       {"reduce-scatter", reduce_scatter},
    {"all-gather", all_gather}, {"all-reduce", all_reduce},
    {"barrier", barrier},       {"space", space},
    {"async", async},           {0},
};

void cli_drill_work_fini(struct cli_drill_work *work)
{
    coll_space_close(work->space);
    base_free(work->x);
    base_free(work->all);
    work->space = NULL;
    work->x = work->all = NULL;
    work->room = work->space_room = 0;
}

base_status cli_drill_room(struct cli_drill_work *work, size_t floats)
{
    size_t total;
    base_status st = BASE_OK;

    if (floats <= work->room)
        goto out;
    base_free(work->x);
    base_free(work->all);
    work->x = work->all = NULL;
    work->room = 0;
    TRY(base_mul(floats, (size_t)work->size, &total));
    TRY(base_tensor(floats, sizeof(float), "numbers", &work->x));
    TRY(base_tensor(total, sizeof(float), "all ranks' numbers", &work->all));
    work->room = floats;
out:
    return st;
}

base_status cli_drill_space_room(struct cli_drill_work *work, size_t floats)
{
    char key[32];
    base_status st = BASE_OK;

    if (floats <= work->space_room)
        goto out;
    coll_space_close(work->space);
    work->space = NULL;
    work->space_room = 0;
    snprintf(key, sizeof key, "drill/%zu", floats);
    TRY(coll_space_open(work->coll, key, floats, &work->space));
    work->space_room = floats;
out:
    return st;
}
