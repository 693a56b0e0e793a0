/* SPDX-License-Identifier: MIT
 *
 * How fast it is: a barrier, a small message there and back, and the way out of a wait after a
 * SIGKILL, also when the victim's memory takes long to tear down. Prints what it measured; what it
 * asserts is only that nothing waits for a deadline. PACELINE_TEST_KILLS sets the number of kills
 * of each kind (default 3); an argument picks tests by name (kills_of_4*).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "support/crew.h"

enum { MAX_KILLS = 1000, PATIENCE = 60 };

struct board {
    _Atomic int ready;
    double out[COMM_MAX_WORKERS]; /* when a survivor was out */
    double seconds;               /* of a barrier, of a message */
};

struct work {
    int victim;
    size_t bytes;   /* that the victim has in memory */
    bool computing; /* the victim is not in the barrier */
    bool receiving; /* the others wait for a message of its */
};

static double soon(void)
{
    return base_now() + PATIENCE;
}

static struct comm_group *open_group(struct crew_worker *me)
{
    struct comm_group *group;
    struct comm_view view;

    crew_view(me, 0, &view);
    crew_check(comm_group_open(me->endpoint, &view, NULL, soon(), &group) == BASE_OK);
    return group;
}

static struct crew *start(int workers, crew_body *body, struct work *work)
{
    return crew_start(&(struct crew_setup){.workers = workers,
                                           .hosts = 1,
                                           .board_bytes = sizeof(struct board),
                                           .body = body,
                                           .argument = work});
}

static void time_barrier(struct crew_worker *me)
{
    enum { COUNT = 20000 };
    struct comm_group *group = open_group(me);
    struct board *board = me->board;
    double start = base_now();

    for (int i = 0; i < COUNT; i++)
        crew_check(comm_local_barrier(group, start + PATIENCE) == BASE_OK);
    if (me->index == 0)
        board->seconds = (base_now() - start) / COUNT;
    comm_group_close(group);
}

static void time_message(struct crew_worker *me)
{
    enum { COUNT = 20000 };
    struct comm_group *group = open_group(me);
    struct board *board = me->board;
    int peer = me->index ^ 1;
    double start = base_now();

    for (int i = 0; i < 2 * COUNT; i++) {
        struct comm_request request, *wait = &request;
        uint64_t word = 0;

        if ((i + me->index) % 2 == 0)
            comm_send(group, peer, COMM_CALLS, 1, &word, sizeof word, wait);
        else
            comm_receive(group, peer, COMM_CALLS, 1, &word, sizeof word, wait);
        crew_check(comm_wait(group, &wait, 1, start + PATIENCE) == BASE_OK);
    }
    if (me->index == 0)
        board->seconds = (base_now() - start) / COUNT;
    comm_group_close(group);
}

static double time_of(int workers, crew_body *body)
{
    struct crew *crew = start(workers, body, NULL);
    struct board *board = crew_board(crew);
    double end = soon();

    while (board->seconds == 0 && base_now() < end)
        usleep(1000);
    end = board->seconds;
    assert_int_equal(crew_finish(crew, soon()), 0);
    return end;
}

static void be_victim(struct board *board, size_t bytes)
{
    char *memory = base_calloc(1, bytes + 1);

    memset(memory, 1, bytes + 1);
    atomic_fetch_add(&board->ready, 1);
    for (;;)
        __asm__ volatile("" : : "r"(memory) : "memory");
}

static void die_or_leave(struct crew_worker *me)
{
    const struct work *work = me->argument;
    struct comm_group *group = open_group(me);
    struct comm_request request, *wait = &request;
    struct board *board = me->board;
    base_status st = BASE_OK;
    char *memory = NULL;
    char byte;

    if (me->index == work->victim && work->computing)
        be_victim(board, work->bytes);
    if (me->index == work->victim) {
        memory = base_calloc(1, work->bytes + 1);
        memset(memory, 1, work->bytes + 1);
    }
    atomic_fetch_add(&board->ready, 1);
    if (work->receiving && me->index != work->victim) {
        comm_receive(group, work->victim, COMM_CALLS, 1, &byte, 1, wait);
        st = comm_wait(group, &wait, 1, soon());
    }
    while (st == BASE_OK)
        st = comm_local_barrier(group, soon());
    board->out[me->index] = base_now();
    crew_check(st == BASE_ERR_PEER_LOST && comm_group_lost(group) == (uint32_t)work->victim + 1);
    comm_group_close(group);
    base_free(memory);
}

/* Seconds from the kill until the last survivor is out. */
static double kill_once(struct work *work, int workers, double *told_p)
{
    struct crew *crew = start(workers, die_or_leave, work);
    struct board *board = crew_board(crew);
    double killed, last = 0;
    bool all = false;

    while (atomic_load(&board->ready) < workers)
        usleep(1000);
    usleep(20000); /* the others fall asleep */
    killed = base_now();
    crew_signal(crew, work->victim, SIGKILL);
    while (!all && base_now() < killed + PATIENCE) {
        all = true;
        last = 0;
        usleep(1000);
        for (int i = 0; i < workers; i++) {
            if (i == work->victim)
                continue;
            all = all && board->out[i] != 0;
            last = board->out[i] > last ? board->out[i] : last;
        }
    }
    *told_p = crew_lost_at(crew, work->victim) - killed;
    assert_int_equal(crew_finish(crew, soon()), 0);
    return all ? last - killed : PATIENCE;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void time_kills(const char *what, struct work work, int workers)
{
    const char *text = getenv("PACELINE_TEST_KILLS");
    int kills = text != NULL ? atoi(text) : 3;
    double times[MAX_KILLS], told[MAX_KILLS];

    kills = kills < 1 ? 1 : kills > MAX_KILLS ? MAX_KILLS : kills;
    work.victim = workers / 2;
    for (int i = 0; i < kills; i++)
        times[i] = kill_once(&work, workers, &told[i]);
    qsort(times, (size_t)kills, sizeof *times, by_size);
    qsort(told, (size_t)kills, sizeof *told, by_size);
    print_message("%d workers, %4zu MB, %s: seen after p50 %.2f p90 %.2f, all out after p50 %.2f "
                  "p90 %.2f max %.2f ms (%d kills)\n",
                  workers, work.bytes >> 20, what, 1e3 * told[kills / 2],
                  1e3 * told[kills * 9 / 10], 1e3 * times[kills / 2], 1e3 * times[kills * 9 / 10],
                  1e3 * times[kills - 1], kills);
    assert_true(times[kills - 1] < PATIENCE / 2);
}

static void latency(void **state)
{
    (void)state;
    for (int workers = 2; workers <= 8; workers *= 2)
        print_message("barrier of %d: %.2f us\n", workers, 1e6 * time_of(workers, time_barrier));
    print_message("8 bytes there and back: %.2f us\n", 1e6 * time_of(2, time_message));
}

static void kills(int workers, size_t bytes)
{
    time_kills("victim computes  ", (struct work){.bytes = bytes, .computing = true}, workers);
    time_kills("victim in barrier", (struct work){.bytes = bytes}, workers);
    time_kills("others receive   ",
               (struct work){.bytes = bytes, .computing = true, .receiving = true}, workers);
}

static void kills_of_2(void **state)
{
    (void)state;
    kills(2, 0);
}

static void kills_of_4(void **state)
{
    (void)state;
    kills(4, 0);
}

static void kills_of_2_with_1_GB(void **state)
{
    (void)state;
    kills(2, (size_t)1 << 30);
}

static void kills_of_4_with_1_GB(void **state)
{
    (void)state;
    kills(4, (size_t)1 << 30);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency),
        cmocka_unit_test(kills_of_2),
        cmocka_unit_test(kills_of_4),
        cmocka_unit_test(kills_of_2_with_1_GB),
        cmocka_unit_test(kills_of_4_with_1_GB),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
