/* SPDX-License-Identifier: MIT
 *
 * Turns are timed from one barrier to the next, on all ranks alike; short operations are repeated
 * inside a turn. Cases take turns, so that whatever the machine does meanwhile meets all of them.
 */
#include "coll/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/coll_private.h"

static const double turn_seconds = 1e-3; /* at least, unless one operation takes longer */
enum { MOST_TURNS = 1000, LIMIT_BYTES = 64 << 20 };

struct coll_measure {
    struct coll *c;
    struct coll_space *space;
    float *x, *all; /* private: one buffer, and the parts of gathers */
    size_t most;
};

base_status coll_measure_open(struct coll *c, size_t most, struct coll_measure **measure_p)
{
    base_status st = BASE_OK;
    struct coll_measure *m = base_calloc(1, sizeof *m);
    size_t n = (size_t)coll_size(c);

    *measure_p = NULL;
    m->c = c;
    m->most = most;
    TRY(base_tensor(most / n + 1, 1, "a part", &m->x));
    TRY(base_tensor(most + sizeof(float), 1, "a buffer", &m->all));
    TRY(coll_space_open(c, "measure", most / sizeof(float) + 1, &m->space));
    *measure_p = m;
    m = NULL;
out:
    coll_measure_close(m);
    return st;
}

void coll_measure_close(struct coll_measure *m)
{
    if (m == NULL)
        return;
    coll_space_close(m->space);
    base_free(m->all);
    base_free(m->x);
    base_free(m);
}

/* The root goes around, so that no rank runs ahead of the others. */
static base_status operate(struct coll_measure *m, const struct coll_case *one, int turn)
{
    struct coll *c = m->c;
    int root = turn % coll_size(c);
    size_t part = one->bytes / (size_t)coll_size(c), floats = one->bytes / sizeof(float);
    float *x = one->shared ? coll_space_mine(m->space) : m->all, *result;

    switch (one->kind) {
    case COLL_BROADCAST:
        return coll_broadcast(c, root, m->all, one->bytes);
    case COLL_GATHER:
        return coll_gather(c, root, m->x, part, m->all);
    case COLL_SCATTER:
        return coll_scatter(c, root, m->all, part, m->x);
    case COLL_ALL_GATHER:
        if (one->shared)
            return coll_all_gather_slices(c, x, floats);
        return coll_all_gather(c, m->x, part, m->all);
    case COLL_REDUCE_SCATTER:
        return coll_reduce_scatter(c, x, floats, NULL);
    case COLL_ALL_REDUCE:
        if (one->shared)
            return coll_space_all_reduce(c, m->space, 0, floats, NULL, &result);
        return coll_all_reduce(c, x, floats, NULL);
    default:
        return coll_barrier(c);
    }
}

/* Times of one operation. A turn lasts from where the barrier before it was left to where its own
 * is: with more ranks than cores a rank may leave late, but then the turn before was longer. */
static base_status repeat(struct coll_measure *m, const struct coll_case *one, int times,
                          double *clock, double *seconds_p)
{
    base_status st = BASE_OK;
    double start = *clock;

    for (int i = 0; i < times; i++)
        TRY(operate(m, one, i));
    TRY(coll_barrier(m->c));
    *clock = base_now();
    *seconds_p = (*clock - start) / times;
out:
    return st;
}

/* Turns of a case with an engine and of one without do not count what it takes to begin or end it.
 */
static base_status prepare(struct coll_measure *m, const struct coll_case *one, double *clock)
{
    struct comm_group *group = coll_group(m->c);
    base_status st = BASE_OK;

    TRY(coll_force(m->c, one->forced));
    if (one->engine == (comm_group_engine(group) != NULL))
        goto out;
    TRY(one->engine ? comm_engine_begin(group) : comm_engine_end(group));
    TRY(coll_barrier(m->c));
    *clock = base_now();
out:
    return st;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct series {
    int times; /* operations of a turn */
    double seconds[MOST_TURNS];
};

base_status coll_measure_all(struct coll_measure *m, const struct coll_case *cases, int count,
                             double seconds, struct coll_times *times_p)
{
    base_status st = BASE_OK;
    struct series *series = base_calloc((size_t)count, sizeof *series);
    double round = 0, one, turns, clock;

    for (int i = 0; i < count; i++) {
        TRY(prepare(m, &cases[i], &clock));
        clock = base_now();
        for (int again = 0; again < 2; again++) /* the first one warms up */
            TRY(repeat(m, &cases[i], 1, &clock, &one));
        TRY(coll_broadcast(m->c, 0, &one, sizeof one)); /* all go by rank 0's time */
        series[i].times = one < turn_seconds ? (int)(turn_seconds / one) + 1 : 1;
        round += one * series[i].times;
    }
    turns = seconds / round;
    turns = turns < 5 ? 5 : turns > MOST_TURNS ? MOST_TURNS : turns;
    TRY(coll_barrier(m->c));
    clock = base_now();
    for (int turn = 0; turn < (int)turns; turn++)
        for (int i = 0; i < count; i++) {
            TRY(prepare(m, &cases[i], &clock));
            TRY(repeat(m, &cases[i], series[i].times, &clock, &series[i].seconds[turn]));
        }
    for (int i = 0; i < count; i++) {
        qsort(series[i].seconds, (size_t)turns, sizeof(double), by_value);
        times_p[i] = (struct coll_times){series[i].seconds[(int)turns / 2], series[i].seconds[0],
                                         (int)turns};
    }
    TRY(comm_engine_end(coll_group(m->c)));
out:
    base_ignore(coll_force(m->c, NULL));
    base_free(series);
    return st;
}

const char *coll_measure_algorithm(struct coll_measure *m, const struct coll_case *one)
{
    static const struct coll_sum sum = {0};
    struct coll_call call = {
        .kind = one->kind, .count = one->bytes / (size_t)coll_size(m->c), .sum = &sum};
    const char *name = "none"; /* one worker */

    if (one->kind == COLL_BROADCAST)
        call.count = one->bytes;
    if (one->kind == COLL_ALL_REDUCE || one->kind == COLL_REDUCE_SCATTER || one->shared) {
        call.x = one->shared ? coll_space_mine(m->space) : m->all;
        call.count = one->bytes / sizeof(float);
        call.space = one->shared && m->space->memory == NULL ? m->space : NULL;
    }
    if (coll_size(m->c) > 1 && coll_force(m->c, one->forced) == BASE_OK)
        name = coll_choose(m->c, &call)->name;
    base_ignore(coll_force(m->c, NULL));
    return name;
}

/* Copies of the buffer that go through a rank's link at least. */
static double share_of_link(enum coll_kind kind, int workers)
{
    double n = workers;

    switch (kind) {
    case COLL_BARRIER:
        return 0;
    case COLL_BROADCAST:
        return n > 1 ? 1 : 0;
    case COLL_ALL_REDUCE:
        return 2 * (n - 1) / n;
    default:
        return (n - 1) / n;
    }
}

double coll_bus_bandwidth(const struct coll_case *one, int workers, double seconds)
{
    return seconds > 0 ? share_of_link(one->kind, workers) * (double)one->bytes / seconds : 0;
}

/* Reads or writes of a whole buffer that does not fit the caches, piece by piece. */
static void touch(float *memory, bool writes)
{
    enum { PIECE = 4096 };
    size_t count = LIMIT_BYTES / sizeof *memory, quarter = count / 4;
    float line[PIECE] = {0}, *out = line;
    const float *from = line;

    for (size_t i = 0; i < quarter; i += PIECE) {
        const float *sources[4] = {memory + i, memory + quarter + i, memory + 2 * quarter + i,
                                   memory + 3 * quarter + i};

        if (!writes)
            coll_kernels()->sum(PIECE, 4, sources, NULL, 1, &out, false);
        for (int k = 0; writes && k < 4; k++)
            coll_kernels()->sum(PIECE, 1, &from, NULL, 1, (float *const *)&sources[k], true);
    }
}

/* Of all ranks at once. */
static base_status time_memory(struct coll_measure *m, bool writes, float *memory, double *rate_p)
{
    enum { TURNS = 5 };
    base_status st = BASE_OK;
    double start = 0;

    for (int turn = 0; turn <= TURNS; turn++) { /* the first one warms up */
        if (turn == 1)
            start = base_now();
        touch(memory, writes);
        TRY(coll_barrier(m->c));
    }
    *rate_p = (double)LIMIT_BYTES * coll_size(m->c) * TURNS / (base_now() - start);
out:
    return st;
}

base_status coll_measure_limits(struct coll_measure *m, struct coll_limits *limits_p)
{
    base_status st = BASE_OK;
    float *memory = NULL;

    *limits_p = (struct coll_limits){0};
    TRY(base_tensor(LIMIT_BYTES, 1, "a measurement of memory", &memory));
    TRY(time_memory(m, false, memory, &limits_p->memory_read));
    TRY(time_memory(m, true, memory, &limits_p->memory_write));
    if (coll_size(m->c) > 1)
        TRY(coll_cost_link(m->c, &limits_p->link));
out:
    base_free(memory);
    return st;
}

double coll_limit(const struct coll_measure *m, const struct coll_case *one,
                  const struct coll_limits *limits)
{
    double n = coll_size(m->c), bytes = (double)one->bytes;
    double read = bytes / limits->memory_read, write = bytes / limits->memory_write;

    if (n == 1 || one->kind == COLL_BARRIER)
        return 0;
    if (!coll_shares(m->c))
        return share_of_link(one->kind, coll_size(m->c)) * bytes / limits->link;
    switch (one->kind) {
    case COLL_ALL_REDUCE:
        return one->shared ? n * read + write : n * (read + write);
    case COLL_REDUCE_SCATTER:
        return n * read + write;
    case COLL_ALL_GATHER:
        return (n - 1) * (read + write);
    case COLL_BROADCAST:
        return read + (n - 1) * write;
    default:
        return (n - 1) / n * (read + write);
    }
}
