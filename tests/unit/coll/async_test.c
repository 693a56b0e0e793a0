/* SPDX-License-Identifier: MIT
 *
 * The communication thread: more operations than its queue holds, one worker alone, an end of the
 * job while operations are queued, calls at the wrong time. Runs under the thread sanitizer, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/engine.h"
#include "support/groups.h"
#include "support/sums.h"

enum { FLOATS = 5000, RANGES = 10, RANGE = FLOATS / RANGES };

static void enter(struct crew_worker *me, struct comm_group **group_p, struct coll **coll_p,
                  struct coll_space **space_p)
{
    *group_p = groups_open(me, 0);
    crew_check(coll_open(*group_p, NULL, coll_p) == BASE_OK);
    crew_check(coll_space_open(*coll_p, "async", FLOATS, space_p) == BASE_OK);
}

static void leave(struct comm_group *group, struct coll *coll, struct coll_space *space)
{
    coll_space_close(space);
    coll_close(coll);
    comm_group_close(group);
}

/* Thousands of sums of 1 in each range; the rank that starts them is far ahead. */
static void many(struct crew_worker *me)
{
    enum { ROUNDS = 300 };
    struct comm_group *group;
    struct coll_space *space;
    struct coll *coll;
    uint64_t ticket = 0, last = 0;
    float scale[3] = {0.25f, 0.25f, 0.5f}, *mine, *result;
    const struct coll_sum sum = {.scale = scale};

    enter(me, &group, &coll, &space);
    mine = coll_space_mine(space);
    for (int i = 0; i < FLOATS; i++)
        mine[i] = 1.0f; /* the mean of ones is one, wherever it is written */
    crew_check(comm_engine_begin(coll_group(coll)) == BASE_OK);
    for (int i = 0; i < ROUNDS * RANGES; i++) {
        crew_check(coll_start_all_reduce(coll, space, (size_t)(i % RANGES) * RANGE, RANGE, &sum,
                                         &ticket) == BASE_OK);
        crew_check(ticket == ++last);
        if (i % 7 == 0) {
            crew_check(coll_async_wait(coll, ticket, &result) == BASE_OK);
            crew_check(result[0] == 1.0f && result[RANGE - 1] == 1.0f);
        }
    }
    memset(scale, 0, sizeof scale); /* was copied when it was started */
    crew_check(comm_engine_end(coll_group(coll)) == BASE_OK);
    for (int i = 0; i < FLOATS; i++)
        crew_check(mine[i] == 1.0f);
    crew_check(coll_barrier(coll) == BASE_OK);
    leave(group, coll, space);
}

struct order {
    struct coll *coll;
    struct coll_space *space;
    base_status started, awaited;
};

/* The engine's thread starts nothing and awaits nothing; what it does itself it may. */
static base_status start_another(void *context)
{
    struct order *o = context;
    uint64_t ticket;
    float *result;

    o->started = coll_start_all_reduce(o->coll, o->space, 0, 1, NULL, &ticket);
    o->awaited = coll_async_wait(o->coll, 1, &result);
    return coll_space_all_reduce(o->coll, o->space, 0, 1, NULL, &result);
}

static void alone(struct crew_worker *me)
{
    const float scale = 0.5f;
    const struct coll_sum sum = {.scale = &scale};
    struct comm_group *group;
    struct coll_space *space;
    struct coll *coll;
    struct comm_task task;
    struct order order;
    uint64_t ticket;
    float *result;

    enter(me, &group, &coll, &space);
    coll_space_mine(space)[7] = 3.0f;
    crew_check(coll_async_wait(coll, 1, &result) == BASE_ERR_INTERNAL);
    crew_check(comm_engine_begin(coll_group(coll)) == BASE_OK);
    crew_check(comm_engine_begin(coll_group(coll)) == BASE_ERR_INTERNAL);
    crew_check(coll_start_all_reduce(coll, space, 7, 1, &sum, &ticket) == BASE_OK);
    crew_check(coll_async_wait(coll, ticket, &result) == BASE_OK && *result == 1.5f);
    order = (struct order){coll, space, BASE_OK, BASE_OK};
    comm_engine_order(comm_group_engine(group), start_another, &order, &task);
    crew_check(comm_engine_wait(comm_group_engine(group), &task, groups_soon()) == BASE_OK);
    crew_check(order.started == BASE_ERR_INTERNAL && order.awaited == BASE_ERR_INTERNAL);
    crew_check(coll_start_all_reduce(coll, space, FLOATS, 1, NULL, &ticket) == BASE_ERR_INTERNAL);
    crew_check(coll_start_all_reduce(coll, space, 1, SIZE_MAX, NULL, &ticket) == BASE_ERR_INTERNAL);
    crew_check(coll_start_all_reduce(coll, space, FLOATS, 0, NULL, &ticket) == BASE_OK);
    crew_check(coll_async_wait(coll, ticket, &result) == BASE_OK);
    leave(group, coll, space); /* ends the thread, too */
}

/* Rank 0 starts operations that no rank answers; then the job ends. */
static void cancelled(struct crew_worker *me)
{
    struct groups_board *board = me->board;
    struct comm_group *group;
    struct coll_space *space;
    struct coll *coll;
    uint64_t tickets[5];
    float *result;

    enter(me, &group, &coll, &space);
    if (me->index == 0) {
        crew_check(comm_engine_begin(coll_group(coll)) == BASE_OK);
        for (size_t i = 0; i < 5; i++)
            crew_check(coll_start_all_reduce(coll, space, i, 1, NULL, &tickets[i]) == BASE_OK);
        atomic_store(&board->ready, 1);
        for (size_t i = 0; i < 5; i++)
            crew_check(coll_async_wait(coll, tickets[i], &result) == BASE_ERR_INTERRUPTED);
        crew_check(strstr(base_message(), "ends") != NULL);
        crew_check(comm_engine_end(coll_group(coll)) == BASE_ERR_INTERRUPTED);
        atomic_store(&board->go, 1);
    }
    while (atomic_load(&board->go) == 0)
        usleep(1000);
    leave(group, coll, space);
}

static void test_many(void **state)
{
    groups_run(*state, 3, many);
}

static void test_alone(void **state)
{
    groups_run(*state, 1, alone);
}

static void test_cancelled(void **state)
{
    struct crew *crew = groups_start(*state, 2, cancelled);
    struct groups_board *board = crew_board(crew);

    while (atomic_load(&board->ready) == 0)
        usleep(200);
    crew_cancel(crew);
    assert_int_equal(crew_finish(crew, groups_soon()), 0);
}

int main(void)
{
    struct groups_way ways[GROUPS_WAYS];
    int count = groups_ways(ways), failed = 0;

    for (int i = 0; i < count; i++) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(test_many, &ways[i]),
            cmocka_unit_test_prestate(test_alone, &ways[i]),
            cmocka_unit_test_prestate(test_cancelled, &ways[i]),
        };

        failed += cmocka_run_group_tests_name(ways[i].name, tests, NULL, NULL);
    }
    return failed;
}
