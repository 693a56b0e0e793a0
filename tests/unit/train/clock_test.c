/* SPDX-License-Identifier: MIT
 *
 * The clock's categories sum to its total, whatever was entered, moved or given up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "train/clock.h"

static void pass(double seconds)
{
    double until = base_now() + seconds;

    while (base_now() < until) {
    }
}

static void assert_sums(const struct train_times *t)
{
    double sum = t->compute + t->communicate + t->wait + t->data + t->stolen;

    assert_true(fabs(sum - t->total) < 1e-9);
    assert_true(t->compute >= 0 && t->stolen >= 0);
}

static void test_categories_sum_to_the_total(void **state)
{
    struct train_clock c;
    struct train_times t;

    (void)state;
    train_clock_start(&c);
    pass(0.002);
    assert_int_equal(train_clock_enter(&c, TRAIN_DATA), TRAIN_COMPUTE);
    pass(0.001);
    assert_int_equal(train_clock_enter(&c, TRAIN_WAIT), TRAIN_DATA);
    pass(0.003);
    t = train_clock_times(&c); /* in the middle of a category */
    assert_sums(&t);
    assert_int_equal(train_clock_enter(&c, TRAIN_COMMUNICATE), TRAIN_WAIT);
    pass(0.001);
    train_clock_enter(&c, TRAIN_COMPUTE);
    train_clock_move(&c, TRAIN_COMMUNICATE, 0.0005);
    t = train_clock_times(&c);
    assert_sums(&t);
    assert_true(t.data >= 0.001 && t.wait >= 0.003 && t.communicate >= 0.0015);
    assert_true(t.compute + t.stolen >= 0.0015);
}

/* Sleeping while "computing" is time that the thread had no core for. */
static void test_stolen(void **state)
{
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    struct train_clock c;
    struct train_times t;

    (void)state;
    train_clock_start(&c);
    nanosleep(&pause, NULL);
    train_clock_enter(&c, TRAIN_WAIT);
    nanosleep(&pause, NULL);
    train_clock_enter(&c, TRAIN_COMPUTE);
    t = train_clock_times(&c);
    assert_sums(&t);
    assert_true(t.stolen >= 0.015);
    assert_true(t.wait >= 0.02);
    assert_true(t.compute < t.stolen);
}

/* What a worker did for a peer that was lost was waiting, from wherever it was given up. */
static void test_lost(void **state)
{
    struct train_clock c, before;
    struct train_times t;

    (void)state;
    train_clock_start(&c);
    train_clock_enter(&c, TRAIN_COMMUNICATE);
    pass(0.001);
    train_clock_enter(&c, TRAIN_COMPUTE);
    before = c;
    train_clock_enter(&c, TRAIN_COMMUNICATE);
    pass(0.002);
    train_clock_lost(&c, &before);
    assert_int_equal(c.current, TRAIN_COMPUTE);
    assert_true(fabs(train_clock_since(&c, &before, TRAIN_COMMUNICATE)) < 1e-12);
    assert_true(train_clock_since(&c, &before, TRAIN_WAIT) >= 0.002);
    t = train_clock_times(&c);
    assert_sums(&t);
    assert_true(t.communicate >= 0.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_categories_sum_to_the_total),
        cmocka_unit_test(test_stolen),
        cmocka_unit_test(test_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
