/* SPDX-License-Identifier: MIT
 *
 * What happens to collectives when a rank does not do its part: killed inside each algorithm, at
 * random moments; silent; or in another operation than the rest. Every survivor is told, none
 * hangs, no sum is wrong. PACELINE_TEST_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/engine.h"
#include "support/groups.h"
#include "support/sums.h"

enum { MOST = 100000 };

static const size_t counts[] = {1, 1000, 20000, MOST};

static uint32_t dice(uint64_t seed, uint32_t index)
{
    const struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, 1, 0, 0);

    return base_rng_u32(&rng, index);
}

/* One operation of the algorithm's kind; a sum that comes out must be right. */
static base_status operate(struct coll *coll, enum coll_kind kind, float *x, size_t count,
                           const float *want)
{
    int rank = comm_group_rank(coll_group(coll)), root = 0;
    base_status st = BASE_OK;

    sums_fill(rank, count, x);
    switch (kind) {
    case COLL_BROADCAST:
        return coll_broadcast(coll, root, x, count * sizeof *x);
    case COLL_GATHER:
        return coll_gather(coll, root, x, count * sizeof *x / 8, x + MOST);
    case COLL_SCATTER:
        return coll_scatter(coll, root, x + MOST, count * sizeof *x / 8, x);
    case COLL_ALL_GATHER:
        return coll_all_gather(coll, x, count * sizeof *x / 8, x + MOST);
    case COLL_REDUCE_SCATTER:
        return coll_reduce_scatter(coll, x, count, NULL);
    case COLL_ALL_REDUCE:
        st = coll_all_reduce(coll, x, count, NULL);
        crew_check(st != BASE_OK || sums_distance(count, x, want) < 1e-5f);
        return st;
    default:
        return coll_barrier(coll);
    }
}

static base_status asynchronously(struct coll *coll, struct coll_space *space, size_t count)
{
    base_status st = BASE_OK, end;
    uint64_t ticket[4];
    float *result;

    TRY(comm_engine_begin(coll_group(coll)));
    for (size_t i = 0; st == BASE_OK && i < 4; i++)
        st = coll_start_all_reduce(coll, space, i * 1000, count < 1000 ? count : 1000, NULL,
                                   &ticket[i]);
    for (int i = 0; st == BASE_OK && i < 4; i++)
        st = coll_async_wait(coll, ticket[i], &result);
    end = comm_engine_end(coll_group(coll));
    crew_check(end == st);
out:
    return st;
}

/* Until a loss; then the next view works. */
static void survive(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    const struct coll_algorithm *a = way->argument;
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    uint32_t view = comm_group_view(group)->number, turn = 0;
    struct coll_space *space = NULL;
    struct coll *coll;
    char forced[64];
    float *x, *want;
    base_status st;

    crew_check(base_tensor(2 * MOST, sizeof *x, "x", &x) == BASE_OK);
    crew_check(base_tensor(MOST, sizeof *x, "want", &want) == BASE_OK);
    sums_reference(COLL_ORDER_RANKS, comm_group_view(group), MOST, NULL, want);
    snprintf(forced, sizeof forced, "%s=%s", coll_kind_names[a->kind], a->name);
    atomic_fetch_add(&board->ready, 1);
    st = coll_open(group, forced, &coll);
    if (st == BASE_ERR_USAGE) /* does not serve this group */
        st = coll_open(group, NULL, &coll);
    if (st == BASE_OK)
        st = coll_space_open(coll, "loss", MOST, &space);
    while (st == BASE_OK) {
        uint32_t faces = dice(way->seed, turn++);

        if (a->kind == COLL_ALL_REDUCE && faces % 8 == 0)
            st = asynchronously(coll, space, counts[faces / 8 % 4]);
        else
            st = operate(coll, a->kind, x, counts[faces / 8 % 4], want);
    }
    crew_check(st == BASE_ERR_PEER_LOST);
    crew_check(comm_group_lost(group) == atomic_load(&board->victim));
    crew_check(coll == NULL || coll_barrier(coll) == BASE_ERR_PEER_LOST); /* at once */
    coll_space_close(space);
    coll_close(coll);
    comm_group_close(group);
    group = groups_open(me, view);
    crew_check(coll_open(group, NULL, &coll) == BASE_OK);
    sums_reference(COLL_ORDER_RANKS, comm_group_view(group), 1000, NULL, want);
    crew_check(operate(coll, COLL_ALL_REDUCE, x, 1000, want) == BASE_OK);
    coll_close(coll);
    comm_group_close(group);
}

static void test_kills(void **state)
{
    const char *text = getenv("PACELINE_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    struct groups_way way = *(struct groups_way *)*state;

    if ((way.can & COMM_CAN_RECOVER) == 0)
        skip();
    print_message("PACELINE_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < coll_algorithm_count; i++) {
        way.argument = coll_algorithm_registry[i];
        for (uint32_t turn = 0; turn < 3; turn++) {
            int workers = 2 + (int)turn;

            way.seed = seed + i * 16 + turn;
            groups_kill_one(survive, &way, workers, (int)(dice(way.seed, 1000) % (uint32_t)workers),
                            (double)(dice(way.seed, 1001) % 20000) * 1e-6);
        }
    }
}

/* The last rank does not come. */
static void one_is_silent(struct crew_worker *me)
{
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    int size = comm_group_size(group);
    struct coll *coll;
    float x[100] = {0};
    double start;

    crew_check(coll_open(group, NULL, &coll) == BASE_OK);
    coll_patience(coll, 0.2);
    start = base_now();
    if (me->index != size - 1) {
        crew_check(coll_all_reduce(coll, x, 100, NULL) == BASE_ERR_TIMEOUT);
        crew_check(base_now() > start + 0.19 && base_now() < start + 10);
        crew_check(coll_all_reduce(coll, x, 100, NULL) == BASE_ERR_TIMEOUT);
        atomic_fetch_add(&board->go, 1);
    }
    while (atomic_load(&board->go) < size - 1)
        usleep(1000);
    coll_close(coll);
    comm_group_close(group);
}

/* Ranks that are not in the same operation: an error, no sum. */
static void they_disagree(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    const char *forced = way->can & COMM_CAN_NATIVE ? "ring" : NULL; /* MPI's own do not look */
    struct coll *coll;
    float x[200] = {0};
    base_status st;

    crew_check(coll_open(group, forced, &coll) == BASE_OK);
    coll_patience(coll, 2);
    st = me->index == 0 ? coll_all_reduce(coll, x, 100, NULL) : coll_all_reduce(coll, x, 200, NULL);
    crew_check(st != BASE_OK);
    atomic_fetch_add(&board->go, st == BASE_ERR_DATA ? 1 : 100);
    while (atomic_load(&board->go) % 100 + atomic_load(&board->go) / 100 < comm_group_size(group))
        usleep(1000);
    crew_check(atomic_load(&board->go) % 100 > 0); /* at least one rank has seen it */
    coll_close(coll);
    comm_group_close(group);
}

static void test_silent(void **state)
{
    groups_run(*state, 2, one_is_silent);
    groups_run(*state, 4, one_is_silent);
}

static void test_disagree(void **state)
{
    groups_run(*state, 2, they_disagree);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_disagree),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
