/* SPDX-License-Identifier: MIT
 *
 * Parts of a group (coll_open_part) over every transport: several in use by the same ranks in
 * turns, without the ranks outside, opened again; ranks that disagree; losses inside and outside
 * the part. Each algorithm in parts: collectives_test.c. PACELINE_TEST_SEED repeats a run; an
 * argument (shm, tcp, tcp+tls, mixed) picks a transport.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "coll/coll.h"
#include "support/groups.h"
#include "support/sums.h"

enum { MOST = 70000 };

static const size_t counts[] = {1, 1000, 5000, MOST};

static float x[MOST], want[MOST];

static uint32_t dice(uint64_t seed, uint32_t index)
{
    const struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, 2, 0, 0);

    return base_rng_u32(&rng, index);
}

/* An all-reduce whose terms are those of the group's ranks: a sum of other ranks would be seen. */
static base_status sum_of(struct coll *coll, const int *ranks, size_t count)
{
    int me = ranks[coll_rank(coll)];
    base_status st;

    memset(want, 0, count * sizeof *want);
    for (int r = 0; r < coll_size(coll); r++)
        for (size_t i = 0; i < count; i++)
            want[i] += sums_value(ranks[r], i);
    sums_fill(me, count, x);
    st = coll_all_reduce(coll, x, count, NULL);
    crew_check(st != BASE_OK || sums_distance(count, x, want) < 1e-5f);
    return st;
}

/* --- what must work ------------------------------------------------------------------------ */

enum { PARTS = 4 };

struct part {
    int ranks[COMM_MAX_WORKERS], count;
    struct coll *coll; /* NULL: this rank is not of it */
};

/* All ranks; all but the last; all but the first, in reverse; the first and the last. */
static void name_ranks(struct part *parts, int size)
{
    memset(parts, 0, PARTS * sizeof *parts);
    for (int i = 0; i < size; i++) {
        parts[0].ranks[parts[0].count++] = i;
        if (i < size - 1)
            parts[1].ranks[parts[1].count++] = i;
        if (i < size - 1)
            parts[2].ranks[parts[2].count++] = size - 1 - i;
    }
    parts[3].ranks[parts[3].count++] = 0;
    parts[3].ranks[parts[3].count++] = size - 1;
}

static bool is_of(const struct part *part, int rank)
{
    for (int i = 0; i < part->count; i++)
        if (part->ranks[i] == rank)
            return true;
    return false;
}

static void open_parts(struct coll *whole, struct part *parts)
{
    for (int i = 0; i < PARTS; i++)
        if (is_of(&parts[i], coll_rank(whole)))
            crew_check(coll_open_part(whole, "turns", parts[i].ranks, parts[i].count, NULL,
                                      &parts[i].coll) == BASE_OK);
}

static void close_parts(struct part *parts)
{
    for (int i = 0; i < PARTS; i++) {
        coll_close(parts[i].coll);
        parts[i].coll = NULL;
    }
}

/* One operation of the whole or of a part after the other, in an order that all ranks know; ranks
 * that are not of a part go on at once. */
static void in_turns(struct crew_worker *me)
{
    const int rounds = groups_brief() ? 2 : 4, turns = groups_brief() ? 20 : 100;
    struct comm_group *group = groups_open(me, 0);
    struct part parts[PARTS];
    struct coll *whole;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    name_ranks(parts, comm_group_size(group));
    for (int round = 0; round < rounds; round++) {
        open_parts(whole, parts);
        for (int turn = 0; turn < turns; turn++) {
            uint32_t faces = dice(7, (uint32_t)(round * turns + turn));
            const struct part *part = &parts[faces % PARTS];
            size_t count = counts[faces / PARTS % 4];

            if (faces / 16 % 4 == 0)
                crew_check(sum_of(whole, parts[0].ranks, count) == BASE_OK);
            else if (part->coll != NULL)
                crew_check(sum_of(part->coll, part->ranks, count) == BASE_OK);
        }
        close_parts(parts);
    }
    coll_close(whole);
    comm_group_close(group);
}

/* The last rank opens the group and then does nothing until the others are through. */
static void without_the_others(struct crew_worker *me)
{
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    int size = comm_group_size(group), ranks[COMM_MAX_WORKERS];
    struct coll_space *space;
    struct coll *whole, *part;
    float *result;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    for (int i = 0; i < size - 1; i++)
        ranks[i] = i;
    if (me->index < size - 1) {
        crew_check(coll_open_part(whole, "workers", ranks, size - 1, NULL, &part) == BASE_OK);
        crew_check(coll_size(part) == size - 1 && coll_rank(part) == me->index);
        crew_check(coll_group(part) == group);
        crew_check(coll_space_open(part, "space", 1000, &space) == BASE_OK);
        for (int i = 0; i < 50; i++) {
            crew_check(sum_of(part, ranks, counts[i % 4]) == BASE_OK);
            crew_check(coll_barrier(part) == BASE_OK);
            coll_space_mine(space)[0] = 1;
            crew_check(coll_space_all_reduce(part, space, 0, 1000, NULL, &result) == BASE_OK);
            crew_check(result[0] == (float)(size - 1));
            crew_check(coll_barrier(part) == BASE_OK); /* no rank writes while others look */
        }
        coll_space_close(space);
        coll_close(part);
        atomic_fetch_add(&board->go, 1);
    }
    while (atomic_load(&board->go) < size - 1)
        usleep(200);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    crew_check(sum_of(whole, ranks, 1000) == BASE_OK);
    coll_close(whole);
    comm_group_close(group);
}

/* Parts come and go: their numbers are given out again. A part of a part works; one of one rank
 * needs no other. */
static void again_and_again(struct crew_worker *me)
{
    enum { ROUNDS = 34 }; /* of two parts: more than there are numbers */
    struct comm_group *group = groups_open(me, 0);
    int pair[] = {1, 0}, inner[] = {1, 0}, ranks[] = {0, 1};
    struct coll *whole, *part, *part_of_part;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    for (int i = 0; i < ROUNDS && me->index < 2; i++) {
        crew_check(coll_open_part(whole, "again", pair, 2, NULL, &part) == BASE_OK);
        crew_check(sum_of(part, pair, 100) == BASE_OK);
        crew_check(coll_open_part(part, "again", inner, 2, NULL, &part_of_part) == BASE_OK);
        crew_check(coll_rank(part_of_part) == me->index);
        crew_check(sum_of(part_of_part, ranks, 100) == BASE_OK);
        coll_close(part_of_part);
        coll_close(part);
    }
    crew_check(coll_open_part(whole, "alone", &me->index, 1, NULL, &part) == BASE_OK);
    crew_check(sum_of(part, &me->index, 100) == BASE_OK && coll_barrier(part) == BASE_OK);
    coll_close(part);
    coll_close(whole);
    comm_group_close(group);
}

/* Two parts of the same key and ranks, both open: no byte of one is a byte of the other. */
static void twins(struct crew_worker *me)
{
    enum { TWINS = 2, FLOATS = 100 };
    struct comm_group *group = groups_open(me, 0);
    const int ranks[] = {0, 1};
    struct coll *whole, *part[TWINS];
    struct coll_space *space[TWINS];
    float *result;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    for (int i = 0; i < TWINS; i++) {
        crew_check(coll_open_part(whole, "twins", ranks, 2, NULL, &part[i]) == BASE_OK);
        crew_check(coll_space_open(part[i], "space", FLOATS, &space[i]) == BASE_OK);
    }
    coll_space_mine(space[0])[0] = 1;
    crew_check(coll_space_mine(space[1])[0] == 0);
    for (int i = 0; i < TWINS; i++) {
        crew_check(coll_space_all_reduce(part[i], space[i], 0, FLOATS, NULL, &result) == BASE_OK);
        crew_check(result[0] == (i == 0 ? 2.0f : 0.0f));
    }
    for (int turn = 0; turn < 50; turn++)
        crew_check(sum_of(part[turn % TWINS], ranks, counts[turn / 2 % 4]) == BASE_OK);
    for (int i = 0; i < TWINS; i++) {
        coll_space_close(space[i]);
        coll_close(part[i]);
    }
    coll_close(whole);
    comm_group_close(group);
}

/* --- what must fail, and how --------------------------------------------------------------- */

static void wrong_ranks(struct crew_worker *me)
{
    static const struct {
        int ranks[2];
        const char *says;
    } wrong[] = {{{0, 9}, "rank 9 is none of 0 … 2"},
                 {{-1, 0}, "rank -1 is none of"},
                 {{0, 0}, "rank 0 is named twice"},
                 {{0, 1}, "rank 2 is not among them"}};
    struct comm_group *group = groups_open(me, 0);
    struct coll *whole, *part;
    int all[] = {0, 1, 2};

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    for (int i = 0; i < 4; i++) {
        if (i == 3 && me->index != 2)
            continue;
        crew_check(coll_open_part(whole, "x", wrong[i].ranks, 2, NULL, &part) == BASE_ERR_INTERNAL);
        crew_check(part == NULL && strstr(base_message(), wrong[i].says) != NULL);
    }
    crew_check(coll_open_part(whole, "x", all, 0, NULL, &part) == BASE_ERR_INTERNAL);
    crew_check(coll_open_part(whole, "x", all, 3, "rung", &part) == BASE_ERR_USAGE);
    crew_check(coll_open_part(whole, "x", all, 3, NULL, &part) == BASE_OK); /* no harm was done */
    crew_check(sum_of(part, all, 100) == BASE_OK);
    coll_close(part);
    coll_close(whole);
    comm_group_close(group);
}

/* Both have failed, one of them because it saw what the other one does; no rank leaves before. */
static void all_have_failed(struct crew_worker *me, base_status st, bool data)
{
    struct groups_board *board = me->board;

    crew_check(st != BASE_OK);
    atomic_fetch_add(&board->counter[0], st == BASE_ERR_DATA);
    atomic_fetch_add(&board->go, 1);
    while (atomic_load(&board->go) < 2)
        usleep(200);
    crew_check(!data || atomic_load(&board->counter[0]) > 0);
}

static void other_key(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    const int pair[] = {0, 1};
    struct coll *whole, *part;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    all_have_failed(me, coll_open_part(whole, me->index ? "a" : "b", pair, 2, NULL, &part), true);
    coll_close(whole);
    comm_group_close(group);
}

static void other_order(struct crew_worker *me)
{
    struct comm_group *group = groups_open(me, 0);
    const int pairs[2][2] = {{0, 1}, {1, 0}};
    struct coll *whole, *part;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    all_have_failed(me, coll_open_part(whole, "a", pairs[me->index], 2, NULL, &part), true);
    coll_close(whole);
    comm_group_close(group);
}

/* The same operation, but of two parts of the same ranks. In shared memory the two wait at
 * different barriers until time is up. */
static void other_part(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    const bool by_messages = !way->shares || way->hosts > 1;
    struct comm_group *group = groups_open(me, 0);
    const int pair[] = {0, 1};
    struct coll *whole, *part[2];

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    for (int i = 0; i < 2; i++) {
        crew_check(coll_open_part(whole, i ? "a" : "b", pair, 2, NULL, &part[i]) == BASE_OK);
        coll_patience(part[i], by_messages ? GROUPS_PATIENCE : 0.5);
    }
    all_have_failed(me, sum_of(part[me->index], pair, 1000), by_messages);
    for (int i = 0; i < 2; i++)
        coll_close(part[i]);
    coll_close(whole);
    comm_group_close(group);
}

/* Of ranks 0 and 2 the latter does not come; rank 1 is not of the part. */
static void one_is_silent(struct crew_worker *me)
{
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    const int ranks[] = {0, 2};
    struct coll *whole, *part = NULL;

    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    if (me->index != 1)
        crew_check(coll_open_part(whole, "silent", ranks, 2, NULL, &part) == BASE_OK);
    if (me->index == 0) {
        coll_patience(part, 0.2);
        crew_check(coll_barrier(part) == BASE_ERR_TIMEOUT);
        crew_check(strstr(base_message(), "worker 3 on host ") != NULL);
        crew_check(strstr(base_message(), "worker 2 on host ") == NULL);
        crew_check(coll_barrier(part) == BASE_ERR_TIMEOUT);  /* at once: the group is void, */
        crew_check(coll_barrier(whole) == BASE_ERR_TIMEOUT); /* for the whole, too */
        atomic_store(&board->go, 1);
    }
    while (atomic_load(&board->go) == 0)
        usleep(200);
    coll_close(part);
    coll_close(whole);
    comm_group_close(group);
}

/* --- losses -------------------------------------------------------------------------------- */

/* All ranks but the last are of the part. It works until a loss, of one of them or of the last,
 * then in the next view. */
static void survive(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    struct groups_board *board = me->board;
    struct comm_group *group = groups_open(me, 0);
    uint32_t view = comm_group_view(group)->number, turn = 0;
    int size = comm_group_size(group), ranks[COMM_MAX_WORKERS];
    struct coll *whole, *part = NULL;
    base_status st;

    for (int i = 0; i < size; i++)
        ranks[i] = i;
    atomic_fetch_add(&board->ready, 1);
    st = coll_open(group, NULL, &whole);
    if (st == BASE_OK && me->index < size - 1)
        st = coll_open_part(whole, "loss", ranks, size - 1, NULL, &part);
    while (st == BASE_OK && part != NULL)
        st = sum_of(part, ranks, counts[dice(way->seed, turn++) % 4]);
    if (st == BASE_OK) /* outside; it is told at the first wait */
        st = coll_barrier(whole);
    crew_check(st == BASE_ERR_PEER_LOST);
    crew_check(comm_group_lost(group) == atomic_load(&board->victim));
    crew_check(part == NULL || coll_barrier(part) == BASE_ERR_PEER_LOST); /* at once */
    coll_close(part);
    coll_close(whole);
    comm_group_close(group);
    group = groups_open(me, view);
    crew_check(coll_open(group, NULL, &whole) == BASE_OK);
    crew_check(coll_open_part(whole, "loss", ranks, size - 1, NULL, &part) == BASE_OK);
    crew_check(sum_of(part, ranks, 1000) == BASE_OK);
    coll_close(part);
    coll_close(whole);
    comm_group_close(group);
}

/* --- the suite ----------------------------------------------------------------------------- */

static void test_work(void **state)
{
    groups_run(*state, 3, in_turns);
    groups_run(*state, 4, in_turns);
    groups_run(*state, 6, in_turns); /* more than cores */
    groups_run(*state, 3, without_the_others);
    groups_run(*state, 4, without_the_others);
    groups_run(*state, 2, again_and_again);
    groups_run(*state, 4, again_and_again);
    groups_run(*state, 2, twins);
}

static void test_refusals(void **state)
{
    groups_run(*state, 3, wrong_ranks);
    groups_run(*state, 2, other_key);
    groups_run(*state, 2, other_order);
    groups_run(*state, 2, other_part);
    groups_run(*state, 3, one_is_silent);
}

static void test_losses(void **state)
{
    const char *text = getenv("PACELINE_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    struct groups_way way = *(struct groups_way *)*state;
    const uint32_t crews = groups_brief() ? 6 : 20;

    if ((way.can & COMM_CAN_RECOVER) == 0)
        skip();
    print_message("PACELINE_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < crews; i++) {
        int workers = 3 + (int)(i % 3);
        uint32_t face = dice(seed + i, 1000);

        way.seed = seed + i;
        groups_kill_one(survive, &way, workers,
                        i % 2 ? workers - 1 : (int)(face % (uint32_t)(workers - 1)),
                        (double)(dice(seed + i, 1001) % 20000) * 1e-6);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_losses),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
