/* SPDX-License-Identifier: MIT
 *
 * Rounds of collective operations, each with an algorithm and a size that the job's seed decides,
 * with results that are known exactly. After a loss the survivors tell each other in the next view
 * how far they are, and go on from the furthest.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "coll/coll_private.h"
#include "sim/faults.h"
#include "sim/program.h"

struct work {
    struct cluster_worker *worker;
    struct comm_view view;
    struct comm_group *group;
    struct coll *coll;
    uint64_t seed;
    int64_t round, rounds;
    float *x;
    uint8_t *all;
};

enum { MOST_FLOATS = 1 << 15 };

static uint32_t draw(const struct work *w, uint32_t what, uint32_t below)
{
    struct base_rng rng = base_rng_of(w->seed, BASE_STREAM_TEST, 1, (uint32_t)w->round, what);

    return (uint32_t)(((uint64_t)base_rng_u32(&rng, 0) * below) >> 32);
}

/* A small whole number, so that sums are exact in any order. */
static float value_of(const struct work *w, uint32_t id, size_t i)
{
    return (float)((id * 7 + (uint32_t)w->round * 13 + i * 3) % 64);
}

static uint8_t byte_of(const struct work *w, uint32_t id, size_t i)
{
    return (uint8_t)(id * 31 + (uint32_t)w->round * 17 + i);
}

static uint32_t id_of(const struct work *w, int rank)
{
    return w->view.members[rank].id;
}

static float sum_of(const struct work *w, size_t i)
{
    float sum = 0;

    for (uint32_t rank = 0; rank < w->view.size; rank++)
        sum += value_of(w, id_of(w, (int)rank), i);
    return sum;
}

static void fill_bytes(const struct work *w, int rank, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = byte_of(w, id_of(w, rank), i);
}

static void check_bytes(const struct work *w, int rank, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sim_check(bytes[i] == byte_of(w, id_of(w, rank), i),
                  "round %lld: byte %zu of rank %d is wrong", (long long)w->round, i, rank);
}

/* Forces one of the algorithms of `kind` that serve this group. */
static base_status force(struct work *w, enum coll_kind kind)
{
    const struct coll_algorithm *fit[64];
    uint32_t count = 0;
    char name[64];

    for (size_t i = 0; i < coll_algorithm_count; i++) {
        const struct coll_algorithm *a = coll_algorithm_registry[i];

        if (a->kind == kind && (a->unfit == NULL || a->unfit(w->coll) == NULL))
            fit[count++] = a;
    }
    if (coll_size(w->coll) == 1 || draw(w, 2, 4) == 0)
        return coll_force(w->coll, NULL);
    snprintf(name, sizeof name, "%s=%s", coll_kind_names[kind], fit[draw(w, 3, count)]->name);
    return coll_force(w->coll, name);
}

static base_status reduce(struct work *w, enum coll_kind kind, size_t count)
{
    size_t from = 0, slice = count;
    base_status st = BASE_OK;

    for (size_t i = 0; i < count; i++)
        w->x[i] = value_of(w, cluster_worker_id(w->worker), i);
    if (kind == COLL_ALL_REDUCE)
        TRY(coll_all_reduce(w->coll, w->x, count, NULL));
    else
        TRY(coll_reduce_scatter(w->coll, w->x, count, NULL));
    if (kind == COLL_REDUCE_SCATTER)
        coll_slice(count, coll_rank(w->coll), coll_size(w->coll), &from, &slice);
    for (size_t i = from; i < from + slice; i++)
        sim_check(w->x[i] == sum_of(w, i), "round %lld: a sum is %g where %g is right",
                  (long long)w->round, (double)w->x[i], (double)sum_of(w, i));
out:
    return st;
}

static base_status move_bytes(struct work *w, enum coll_kind kind, size_t count)
{
    int me = coll_rank(w->coll), size = coll_size(w->coll), root = (int)draw(w, 4, (uint32_t)size);
    uint8_t *mine = (uint8_t *)w->x;
    base_status st = BASE_OK;

    fill_bytes(w, me, mine, count);
    if (kind == COLL_BROADCAST) {
        TRY(coll_broadcast(w->coll, root, mine, count));
        check_bytes(w, root, mine, count);
    } else if (kind == COLL_SCATTER) {
        for (int rank = 0; rank < size; rank++)
            fill_bytes(w, rank, w->all + (size_t)rank * count, count);
        TRY(coll_scatter(w->coll, root, me == root ? w->all : NULL, count, mine));
        check_bytes(w, me, mine, count);
    } else {
        bool gathers = kind == COLL_GATHER;

        TRY(gathers ? coll_gather(w->coll, root, mine, count, me == root ? w->all : NULL)
                    : coll_all_gather(w->coll, mine, count, w->all));
        for (int rank = 0; rank < size && (!gathers || me == root); rank++)
            check_bytes(w, rank, w->all + (size_t)rank * count, count);
    }
out:
    return st;
}

static base_status run_round(struct work *w)
{
    enum coll_kind kind = (enum coll_kind)draw(w, 0, COLL_KINDS);
    size_t most = draw(w, 5, 8) == 0 && w->view.size <= 8 ? MOST_FLOATS : 500,
           count = draw(w, 1, (uint32_t)most);
    base_status st = BASE_OK;

    TRY(force(w, kind));
    if (kind == COLL_BARRIER)
        TRY(coll_barrier(w->coll));
    else if (kind == COLL_ALL_REDUCE || kind == COLL_REDUCE_SCATTER)
        TRY(reduce(w, kind, count));
    else
        TRY(move_bytes(w, kind, count / (w->view.size > 8 ? 8 : 1)));
    w->round++;
out:
    return st;
}

/* In a view: all go on from the furthest. */
static base_status run_view(struct work *w)
{
    int64_t rounds[COMM_MAX_WORKERS];
    base_status st = BASE_OK;

    TRY(coll_open(w->group, NULL, &w->coll));
    coll_patience(w->coll, 600);
    TRY(coll_all_gather(w->coll, &w->round, sizeof w->round, rounds));
    for (uint32_t i = 0; i < w->view.size; i++)
        if (rounds[i] > w->round)
            w->round = rounds[i];
    while (w->round < w->rounds) {
        TRY(run_round(w));
        base_sleep_until(base_now() + 1e-3 * sim_worker_self()->slowness);
    }
out:
    coll_close(w->coll);
    w->coll = NULL;
    return st;
}

static base_status collectives_run(struct cluster_worker *worker, const json_t *job,
                                   json_t **result_p)
{
    struct work w = {.worker = worker,
                     .seed = (uint64_t)json_integer_value(json_object_get(job, "seed")),
                     .rounds = json_integer_value(json_object_get(job, "rounds"))};
    base_status st = BASE_OK;

    w.x = base_calloc(MOST_FLOATS, sizeof *w.x);
    w.all = base_calloc(COMM_MAX_WORKERS, MOST_FLOATS);
    do {
        cluster_worker_leave(worker, w.group);
        w.group = NULL;
        TRY(cluster_worker_group(worker, 120, &w.view, &w.group));
        st = run_view(&w);
    } while (st == BASE_ERR_PEER_LOST);
    TRY(st);
    *result_p = json_pack("{s:I}", "rounds", (json_int_t)w.round);
out:
    cluster_worker_leave(worker, w.group);
    base_free(w.x);
    base_free(w.all);
    return st;
}

static json_t *collectives_plan(int workers)
{
    return json_pack("{s:I, s:I}", "seed", (json_int_t)sim_random(UINT32_MAX), "rounds",
                     (json_int_t)(workers > 8 ? 4 + sim_random(8) : 4 + sim_random(24)));
}

static void collectives_check(const struct sim_job *job, const struct sim_end *end)
{
    if (end->code == BASE_OK && end->over && !sim_faults_stopped())
        sim_check(
            json_equal(json_object_get(end->result, "rounds"), json_object_get(job->job, "rounds")),
            "the job ended well before its last round");
}

const struct sim_program sim_program_collectives = {
    .name = "collectives",
    .help = "every collective algorithm, with results that are known exactly",
    .runs = &(const struct cluster_program){.name = "collectives", .run = collectives_run},
    .plan = collectives_plan,
    .check = collectives_check,
};
