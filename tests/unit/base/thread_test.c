/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread.h"

struct table {
    struct base_mutex lock;
    struct base_signal changed;
    int served, eaten;
};

static void *eat(void *argument)
{
    struct table *t = argument;

    base_mutex_lock(&t->lock);
    while (t->eaten < 3) {
        if (t->served > t->eaten) {
            t->eaten++;
            base_signal_wake(&t->changed);
        } else {
            base_signal_wait(&t->changed, &t->lock, INFINITY);
        }
    }
    base_mutex_unlock(&t->lock);
    return NULL;
}

static void serve_and_wait(struct table *t)
{
    base_mutex_lock(&t->lock);
    for (int i = 1; i <= 3; i++) {
        t->served = i;
        base_signal_wake(&t->changed);
        while (t->eaten < i)
            base_signal_wait(&t->changed, &t->lock, INFINITY);
    }
    base_mutex_unlock(&t->lock);
}

static void test_two_threads(void **state)
{
    struct table t = {0};
    struct base_thread eater;

    (void)state;
    base_mutex_init(&t.lock);
    base_signal_init(&t.changed);
    assert_int_equal(base_thread_start(&eater, "eater", eat, &t), BASE_OK);
    serve_and_wait(&t);
    base_thread_join(&eater);
    assert_int_equal(t.eaten, 3);
    base_signal_fini(&t.changed);
    base_mutex_fini(&t.lock);
}

static void test_deadline(void **state)
{
    struct table t = {0};
    double until = base_now() + 0.02;

    (void)state;
    base_mutex_init(&t.lock);
    base_signal_init(&t.changed);
    base_mutex_lock(&t.lock);
    while (base_now() < until)
        base_signal_wait(&t.changed, &t.lock, until);
    base_mutex_unlock(&t.lock);
    base_mutex_lock(&t.lock);
    base_signal_wait(&t.changed, &t.lock, 0); /* has passed: returns at once */
    base_mutex_unlock(&t.lock);
    until = base_now() + 0.02;
    base_sleep_until(until);
    assert_true(base_now() >= until);
    base_sleep_until(until - 1);
    base_signal_fini(&t.changed);
    base_mutex_fini(&t.lock);
}

/* A world of one thread, whose clock jumps to the deadline of every wait. */
static double moment;
static int waits;

static double now_of_world(void)
{
    return moment;
}

static void wait_in_world(const void *address, double deadline)
{
    (void)address;
    moment = deadline;
    waits++;
}

static void wake_in_world(const void *address)
{
    (void)address;
}

static void test_world(void **state)
{
    static const struct base_world world = {
        .now = now_of_world, .wait = wait_in_world, .wake = wake_in_world};
    struct table t = {0};

    (void)state;
    base_world = &world;
    moment = 5;
    base_mutex_init(&t.lock);
    base_signal_init(&t.changed);
    base_mutex_lock(&t.lock);
    base_signal_wait(&t.changed, &t.lock, 7);
    assert_true(t.lock.held);
    assert_true(base_now() == 7);
    base_mutex_unlock(&t.lock);
    assert_false(t.lock.held);
    base_sleep_until(9);
    assert_true(base_now() == 9);
    base_sleep_until(8);
    assert_int_equal(waits, 2);
    base_world = NULL;
    assert_true(base_now() != 9);
}

/* What sched_getattr(2) tells: its third word is nice value and priority, its fourth the length of
 * a turn, or 0 where the kernel has one length for all threads. */
enum { PRIORITY = 2, TURN = 3, WORDS = 6 };

static void ask_kernel(uint64_t words[WORDS])
{
    assert_int_equal(syscall(SYS_sched_getattr, 0, words, WORDS * sizeof *words, 0), 0);
}

static void test_prompt(void **state)
{
    static const struct base_world world = {.now = now_of_world};
    uint64_t before[WORDS] = {0}, after[WORDS] = {0};

    (void)state;
    ask_kernel(before);
    base_world = &world;
    base_thread_prompt();
    base_world = NULL;
    ask_kernel(after);
    assert_true(after[TURN] == before[TURN]);
    base_thread_prompt();
    ask_kernel(after);
    assert_true(after[TURN] == (before[TURN] == 0 ? 0 : 100000));
    assert_true(after[PRIORITY] == before[PRIORITY]);
}

static void test_prompt_real_time(void **state)
{
    const struct sched_param first = {.sched_priority = 1}, usual = {0};
    struct sched_param now;

    (void)state;
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        skip();
    base_thread_prompt();
    assert_int_equal(sched_getparam(0, &now), 0);
    assert_int_equal(now.sched_priority, 2);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &usual), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_world),
        cmocka_unit_test(test_prompt),
        cmocka_unit_test(test_prompt_real_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
