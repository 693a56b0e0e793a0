/* SPDX-License-Identifier: MIT
 *
 * Regions (comm/region.h) between processes, over every transport whose ranks share memory: no copy
 * of two versions is ever seen, however fast they come; a wait ends with a loss and with the job; a
 * writer that is killed while it writes leaves a whole version. PACELINE_TEST_SEED repeats a run;
 * an argument (shm, mixed) picks a transport.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "support/groups.h"
#include "support/versions.h"

enum { BYTES = 300001 };

/* The first rank of each host writes, the others of that host read. */
static void follow(struct crew_worker *me)
{
    const uint64_t last = groups_brief() ? 300 : 3000;
    struct comm_group *group = groups_open(me, 0);
    int locals[COMM_MAX_WORKERS];
    struct comm_region *region;

    comm_group_locals(group, locals);
    crew_check(comm_region_open(group, "weights", BYTES, &region) == BASE_OK);
    if (locals[0] == me->index)
        versions_publish(region, BYTES, last);
    else
        versions_follow(region, BYTES, last, (uint32_t)me->index);
    comm_region_close(region);
    comm_group_close(group);
}

/* A version that comes while the reader sleeps wakes it; two ranks cannot both write. */
static void one_at_a_time(struct crew_worker *me)
{
    enum { VERSIONS = 200 };
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    int locals[COMM_MAX_WORKERS], count = comm_group_locals(group, locals);
    struct comm_region *region;
    uint64_t word = 0, version;

    crew_check(comm_region_open(group, "one", sizeof word, &region) == BASE_OK);
    for (uint64_t v = 1; v <= VERSIONS; v++) {
        if (locals[0] == me->index) {
            crew_check(comm_region_publish(region, v, &(uint64_t){1000 * v}) == BASE_OK);
            for (int i = 1; i < count; i++)
                while (atomic_load(&board->counter[locals[i]]) < (int)v)
                    sched_yield();
            continue;
        }
        crew_check(comm_region_wait(region, v - 1, groups_soon(), &version) == BASE_OK);
        crew_check(version == v);
        crew_check(comm_region_read(region, 0, sizeof word, &word, groups_soon(), &version) ==
                   BASE_OK);
        crew_check(version == v && word == 1000 * v);
        crew_check(comm_region_publish(region, v + 1, &word) == BASE_ERR_INTERNAL);
        atomic_store(&board->counter[me->index], (int)v);
    }
    comm_region_close(region);
    comm_group_close(group);
}

/* --- ends ---------------------------------------------------------------------------------- */

static void wait_for_none(struct crew_worker *me, base_status end)
{
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    struct comm_region *region;
    uint64_t version;

    crew_check(comm_region_open(group, "none", BYTES, &region) == BASE_OK);
    atomic_fetch_add(&board->ready, 1);
    crew_check(comm_region_wait(region, 0, groups_soon(), &version) == end);
    crew_check(comm_region_wait(region, 0, groups_soon(), &version) == end); /* at once */
    crew_check(comm_group_ended(group) == BASE_OK); /* it is told by its own waits */
    comm_region_close(region);
    comm_group_close(group);
}

static void is_lost(struct crew_worker *me)
{
    wait_for_none(me, BASE_ERR_PEER_LOST);
}

static void is_cancelled(struct crew_worker *me)
{
    wait_for_none(me, BASE_ERR_INTERRUPTED);
}

/* The writer of host 0 is killed. What is there is whole; in the next view there is a new region.
 */
static void writer_dies(struct crew_worker *me)
{
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    uint32_t view = comm_group_view(group)->number;
    static uint8_t got[BYTES];
    struct comm_region *region;
    uint64_t version = 0, newest;
    base_status st = BASE_OK;

    crew_check(comm_region_open(group, "dies", BYTES, &region) == BASE_OK);
    atomic_fetch_add(&board->ready, 1);
    if (me->index == 0)
        versions_publish(region, BYTES, UINT64_MAX - 1); /* until it is killed */
    while (st == BASE_OK)
        st = comm_region_wait(region, version, groups_soon(), &version);
    crew_check(st == BASE_ERR_PEER_LOST);
    newest = comm_region_version(region);
    crew_check(comm_region_read(region, 0, BYTES, got, groups_soon(), &version) == BASE_OK);
    crew_check(version == newest && (version == 0 || versions_is(got, 0, BYTES, version)));
    comm_region_close(region);
    comm_group_close(group);
    group = groups_open(me, view);
    crew_check(comm_region_open(group, "dies", BYTES, &region) == BASE_OK);
    crew_check(comm_region_version(region) == 0);
    comm_region_close(region);
    comm_group_close(group);
}

/* --- the suite ----------------------------------------------------------------------------- */

static struct crew *start_and_wait(const struct groups_way *way, int workers, crew_body *body)
{
    struct crew *crew = groups_start(way, workers, body);
    struct groups_board *board = crew_board(crew);

    while (atomic_load(&board->ready) < workers)
        usleep(200);
    return crew;
}

static void test_versions(void **state)
{
    groups_run(*state, 2, follow);
    groups_run(*state, 4, follow);
    groups_run(*state, 6, follow); /* more than cores */
    groups_run(*state, 4, one_at_a_time);
}

static void test_ends(void **state)
{
    struct crew *crew = start_and_wait(*state, 3, is_lost);

    crew_signal(crew, 1, SIGKILL);
    assert_int_equal(crew_finish(crew, groups_soon()), 0);
    crew = start_and_wait(*state, 3, is_cancelled);
    crew_cancel(crew);
    assert_int_equal(crew_finish(crew, groups_soon()), 0);
}

static void test_dead_writer(void **state)
{
    const char *text = getenv("PACELINE_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    const struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, 4, 0, 0);
    const uint32_t crews = groups_brief() ? 4 : 20;

    print_message("PACELINE_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < crews; i++) {
        struct crew *crew = start_and_wait(*state, 2 + (int)i % 3, writer_dies);

        usleep(base_rng_u32(&rng, i) % 20000); /* a random moment */
        crew_signal(crew, 0, SIGKILL);
        assert_int_equal(crew_finish(crew, groups_soon()), 0);
    }
}

static bool shares(const struct groups_way *way)
{
    return way->shares;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_dead_writer),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], shares);
}
