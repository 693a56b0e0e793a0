/* SPDX-License-Identifier: MIT
 *
 * Losses, over every transport that survives them: workers killed at random moments and at chosen
 * ones. Every survivor is told who, and the next view works with the survivors and with nothing of
 * the old one. PACELINE_TEST_SEED repeats a run; an argument (shm, tcp, tcp+tls, mixed) picks one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "support/exchange.h"
#include "support/groups.h"

struct dice {
    struct base_rng rng;
    uint32_t thrown;
};

static struct dice dice_of(uint64_t seed)
{
    return (struct dice){base_rng_of(seed, BASE_STREAM_TEST, 0, 0, 0), 0};
}

static int throw(struct dice * dice, size_t faces)
{
    return (int)(base_rng_u32(&dice->rng, dice->thrown++) % faces);
}

static uint64_t seed_of_run(void)
{
    const char *text = getenv("PACELINE_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);

    print_message("PACELINE_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* --- the children -------------------------------------------------------------------------- */

/* way->victims: bit id of every worker that is killed. */
static bool is_victim(const struct crew_worker *me, uint32_t id)
{
    const struct groups_way *way = me->argument;

    return id != 0 && (way->victims >> id & 1) != 0;
}

/* Every rank throws the same dice. rounds -1: until something happens. */
static base_status work(struct crew_worker *me, struct comm_group *group, int rounds)
{
    const struct groups_way *way = me->argument;
    struct dice dice = dice_of(way->seed);
    base_status st = BASE_OK;

    while (st == BASE_OK && rounds-- != 0) {
        if (way->shares && throw(&dice, 2) == 0)
            st = comm_local_barrier(group, groups_soon());
        else
            st = exchange_run(group, throw(&dice, 3), 2,
                              exchange_sizes[throw(&dice, EXCHANGE_SIZES - 2)], groups_soon());
    }
    return st;
}

static void check_told(struct crew_worker *me, struct comm_group *group)
{
    crew_check(is_victim(me, comm_group_lost(group)));
    crew_check(comm_wait(group, NULL, 0, groups_soon()) == BASE_ERR_PEER_LOST);
}

/* Every loss leads to the next view, until the last loss is over and some rounds went well. */
static void survive(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    struct groups_board *board = me->board;
    uint32_t last_size = (uint32_t)(me->workers - __builtin_popcount(way->victims));
    struct comm_view view = {0};
    struct comm_group *group;
    base_status st;

    atomic_fetch_add(&board->ready, 1);
    do {
        crew_view(me, view.number, &view);
        st = comm_group_open(me->endpoint, &view, way->transport, groups_soon(), &group);
        if (st == BASE_OK)
            st = work(me, group, view.size == last_size ? 5 : -1);
        crew_check(st == BASE_OK || st == BASE_ERR_PEER_LOST);
        if (st != BASE_OK)
            check_told(me, group);
        comm_group_close(group);
    } while (st != BASE_OK);
    crew_check(view.size == last_size);
    atomic_fetch_add(&board->counter[me->index], 1);
}

/* What the victim does when it is killed. */
enum moment { COMPUTES, JOINS, SENDS, RECEIVES, AT_BARRIER, MOMENTS };

static _Noreturn void wait_for_death(struct crew_worker *me, struct comm_group *group,
                                     enum moment moment)
{
    static uint8_t bytes[EXCHANGE_MOST];
    struct groups_board *board = me->board;
    int peer = me->index == 0 ? 1 : 0;
    struct comm_request request, *wait = &request;

    atomic_fetch_add(&board->ready, 1);
    if (moment == SENDS)
        comm_send(group, peer, COMM_BACKWARD, 1, bytes, sizeof bytes, wait);
    if (moment == RECEIVES)
        comm_receive(group, peer, COMM_BACKWARD, 1, bytes, sizeof bytes, wait);
    if (moment == SENDS || moment == RECEIVES)
        crew_check(comm_wait(group, &wait, 1, groups_soon()) == BASE_OK);
    if (moment == AT_BARRIER)
        crew_check(comm_local_barrier(group, groups_soon()) == BASE_OK);
    for (;;)
        pause();
}

/* Leaves on the way, for every survivor, a message that it does not take in this view. */
static void send_stale(struct comm_group *group, struct comm_request *requests)
{
    static uint8_t stale[1000];

    memset(stale, 0xee, sizeof stale);
    for (int peer = 0; peer < comm_group_size(group); peer++)
        if (peer != comm_group_rank(group))
            comm_send(group, peer, COMM_COLLECTIVES, 7, stale, sizeof stale, &requests[peer]);
}

static void lose_one(struct crew_worker *me)
{
    const struct groups_way *way = me->argument;
    const enum moment moment = *(const enum moment *)way->argument;
    struct comm_request requests[COMM_MAX_WORKERS], request, *wait = &request;
    struct groups_board *board = me->board;
    struct comm_group *group;
    struct comm_view view;
    base_status st;
    uint8_t byte;

    crew_view(me, 0, &view);
    if (is_victim(me, me->id) && moment == JOINS)
        wait_for_death(me, NULL, moment);
    if (moment == JOINS)
        atomic_fetch_add(&board->ready, 1);
    st = comm_group_open(me->endpoint, &view, way->transport, groups_soon(), &group);
    if (moment != JOINS) {
        crew_check(st == BASE_OK);
        if (is_victim(me, me->id))
            wait_for_death(me, group, moment);
        send_stale(group, requests);
        atomic_fetch_add(&board->ready, 1);
        comm_receive(group, (me->index + 1) % (int)view.size, COMM_CALLS, 1, &byte, 1, wait);
        st = comm_wait(group, &wait, 1, groups_soon());
    }
    crew_check(st == BASE_ERR_PEER_LOST);
    check_told(me, group);
    comm_group_close(group);
    group = groups_open(me, view.number);
    crew_check(comm_group_size(group) == (int)view.size - 1);
    crew_check(exchange_run(group, 0, COMM_CHANNELS, 1000, groups_soon()) == BASE_OK);
    comm_group_close(group);
    atomic_fetch_add(&board->counter[me->index], 1);
}

/* --- the killer ---------------------------------------------------------------------------- */

static void check_survivors(struct crew *crew, int workers, uint32_t victims)
{
    struct groups_board *board = crew_board(crew);
    int left = workers - __builtin_popcount(victims), told = 0;

    for (double end = groups_soon(); told < left && base_now() < end; usleep(500)) {
        told = 0;
        for (int i = 0; i < workers; i++)
            told += atomic_load(&board->counter[i]);
    }
    assert_int_equal(told, left);
    assert_int_equal(crew_finish(crew, groups_soon()), 0);
}

static void random_moments(void **state)
{
    struct groups_way *way = *state;
    uint64_t seed = seed_of_run();
    const int crews = groups_brief() ? 12 : 40;
    struct dice dice = dice_of(seed);

    for (int i = 0; i < crews; i++) {
        int workers = i % 10 == 9 ? 8 : 2 + throw(&dice, 4);
        int kills = workers > 3 ? 1 + throw(&dice, 2) : 1, first = throw(&dice, (size_t)workers);
        uint32_t victims = 0;
        struct crew *crew;

        for (int k = 0; k < kills; k++)
            victims |= 2U << (first + k) % workers;
        way->seed = seed + (uint64_t)i;
        way->victims = victims;
        crew = groups_start(way, workers, survive);
        groups_wait_for(&((struct groups_board *)crew_board(crew))->ready, workers);
        for (int k = 0; k < kills; k++) {
            /* half of them while the group opens */
            usleep((useconds_t)(throw(&dice, 1000) * (i % 2 != 0 ? 1 : 50)));
            crew_signal(crew, (first + k) % workers, SIGKILL);
        }
        check_survivors(crew, workers, victims);
    }
}

static void chosen_moments(void **state)
{
    struct groups_way *way = *state;

    for (enum moment moment = 0; moment < MOMENTS; moment++) {
        if (moment == AT_BARRIER && !way->shares)
            continue;
        for (int workers = 2; workers <= 4; workers++) {
            for (int victim = 0; victim < workers; victim += workers - 1) {
                struct crew *crew;

                way->argument = &moment;
                way->victims = 2U << victim;
                crew = groups_start(way, workers, lose_one);
                groups_wait_for(&((struct groups_board *)crew_board(crew))->ready, workers);
                crew_signal(crew, victim, SIGKILL);
                check_survivors(crew, workers, way->victims);
            }
        }
    }
}

static bool recovers(const struct groups_way *way)
{
    return (way->can & COMM_CAN_RECOVER) != 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_moments),
        cmocka_unit_test(chosen_moments),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], recovers);
}
