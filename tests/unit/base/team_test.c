/* SPDX-License-Identifier: MIT
 *
 * Teams of threads: every unit of a round is computed exactly once, whatever the threads do
 * meanwhile; what units write is seen when the round is over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"

enum { UNITS = 100, THREADS = 5 };

struct tally {
    int threads;
    int counts[UNITS];       /* not atomic: one thread has a unit */
    _Atomic int by[THREADS]; /* how many each thread had */
    _Atomic int wrong_thread;
};

static void count(const void *context, int unit, int thread)
{
    struct tally *t = *(struct tally *const *)context;

    t->counts[unit]++;
    if (thread < 0 || thread >= t->threads)
        atomic_fetch_add(&t->wrong_thread, 1);
    else
        atomic_fetch_add(&t->by[thread], 1);
}

static void run(struct base_team *team, int units, struct tally *t)
{
    memset(t->counts, 0, sizeof t->counts);
    base_team_run(team, units, count, &t);
    for (int i = 0; i < UNITS; i++)
        assert_int_equal(t->counts[i], i < units);
    assert_int_equal(t->wrong_thread, 0);
}

static void every_unit_once(void **unused)
{
    (void)unused;
    for (int threads = 1; threads <= THREADS; threads++) {
        struct tally t = {.threads = threads};
        struct base_team *team;

        assert_int_equal(base_team_new(threads, &team), BASE_OK);
        assert_int_equal(base_team_threads(team), threads);
        for (int round = 0; round < 3000; round++) {
            run(team, round % (UNITS + 1), &t);
            if (round % 500 == 0) /* helpers fall asleep; most rounds find them awake */
                nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        }
        base_team_free(team);
    }
}

static void helpers_help(void **unused)
{
    struct tally t = {.threads = 2};
    struct base_team *team;

    (void)unused;
    assert_int_equal(base_team_new(2, &team), BASE_OK);
    while (atomic_load(&t.by[1]) == 0) /* ends by the watchdog if it never does */
        run(team, UNITS, &t);
    base_team_free(team);
}

/* A unit that one thread keeps for long: the other does the rest, sleeps, and is woken. */
static void keep(const void *context, int unit, int thread)
{
    _Atomic int *left = *(_Atomic int *const *)context;
    (void)thread;
    while (unit == 0 && atomic_load(left) > 1)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    if (unit == 0) /* longer than a thread spins */
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    atomic_fetch_sub(left, 1);
}

static void slow_unit(void **unused)
{
    struct base_team *team;

    (void)unused;
    assert_int_equal(base_team_new(2, &team), BASE_OK);
    for (int round = 0; round < 20; round++) {
        _Atomic int left = 3, *at = &left;

        base_team_run(team, 3, keep, &at);
        assert_int_equal(left, 0);
    }
    base_team_free(team);
}

/* The leader may be another thread each time. */
static void *lead(void *argument)
{
    struct tally t = {.threads = 3};
    struct tally *at = &t;

    base_team_run(argument, UNITS, count, &at);
    return (void *)(uintptr_t)(t.by[0] + t.by[1] + t.by[2]);
}

static void leaders_change(void **unused)
{
    struct base_team *team;

    (void)unused;
    assert_int_equal(base_team_new(3, &team), BASE_OK);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *units;

        assert_int_equal(pthread_create(&thread, NULL, lead, team), 0);
        assert_int_equal(pthread_join(thread, &units), 0);
        assert_int_equal((int)(uintptr_t)units, UNITS);
    }
    base_team_free(team);
}

/* No CPU while idle. */
static void idle_teams_sleep(void **unused)
{
    struct tally t = {.threads = 4};
    struct base_team *team;
    double cpu;

    (void)unused;
    assert_int_equal(base_team_new(4, &team), BASE_OK);
    run(team, UNITS, &t);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* spinning is over long before */
    cpu = base_process_cpu();
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    assert_true(base_process_cpu() - cpu < 0.1);
    run(team, UNITS, &t);
    base_team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_once),  cmocka_unit_test(helpers_help),
        cmocka_unit_test(slow_unit),        cmocka_unit_test(leaders_change),
        cmocka_unit_test(idle_teams_sleep),
    };

    base_team_free(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
