/* SPDX-License-Identifier: MIT
 *
 * Spans of a worker: one after the other, whole steps or none, and only of the steps that are
 * traced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "train/clock.h"
#include "train/trace.h"

static void pass(double seconds)
{
    double until = base_now() + seconds;

    while (base_now() < until) {
    }
}

static void assert_in_order(const struct train_trace *t)
{
    for (int i = 1; i < t->count; i++)
        assert_true(t->spans[i].began >=
                    t->spans[i - 1].began + t->spans[i - 1].seconds - 1e-6); /* a float's */
}

static void test_follows_the_clock(void **state)
{
    struct train_trace t;
    struct train_clock clock;

    (void)state;
    train_trace_init(&t);
    train_clock_start(&clock);
    clock.trace = &t;
    train_clock_enter(&clock, TRAIN_WAIT); /* outside of a step */
    assert_int_equal(t.count, 0);
    train_clock_enter(&clock, TRAIN_COMPUTE);
    train_trace_begin(&t, 1);
    pass(1e-4);
    train_clock_enter(&clock, TRAIN_DATA);
    pass(1e-4);
    train_clock_enter(&clock, TRAIN_COMPUTE);
    pass(2e-4);
    train_clock_move(&clock, TRAIN_WAIT, 1e-4);
    train_trace_enter_piece(&t, TRAIN_DOING_BACKWARD, 3, 5);
    train_trace_enter(&t, TRAIN_DOING_COMPUTE);
    train_trace_end(&t);
    assert_int_equal(t.count, 5);
    assert_int_equal(t.spans[0].doing, TRAIN_DOING_COMPUTE);
    assert_int_equal(t.spans[1].doing, TRAIN_DOING_DATA);
    assert_int_equal(t.spans[2].doing, TRAIN_DOING_COMPUTE);
    assert_int_equal(t.spans[3].doing, TRAIN_DOING_WAIT);
    assert_true(t.spans[3].seconds > 0.9e-4 && t.spans[3].seconds < 1.1e-4);
    assert_int_equal(t.spans[4].doing, TRAIN_DOING_BACKWARD); /* however short */
    assert_int_equal(t.spans[4].stage, 3);
    assert_int_equal(t.spans[4].piece, 5);
    assert_in_order(&t);
    train_trace_fini(&t);
}

static int traced(struct train_trace *t, int64_t step)
{
    int before = t->count;

    train_trace_begin(t, step);
    train_trace_enter_piece(t, TRAIN_DOING_FORWARD, 0, 0);
    train_trace_end(t);
    return t->count > before;
}

/* The first steps, then one of each hundred, also where a worker does not do every step. */
static void test_which_steps(void **state)
{
    struct train_trace t;
    int count = 0;

    (void)state;
    train_trace_init(&t);
    for (int64_t step = 1; step <= 1000; step++)
        count += traced(&t, step);
    assert_int_equal(count, TRAIN_TRACE_FIRST + 10);
    assert_false(traced(&t, 1030));
    assert_true(traced(&t, 1103));
    assert_false(traced(&t, 1106));
    train_trace_fini(&t);
}

static void test_a_step_that_never_was(void **state)
{
    struct train_trace t;

    (void)state;
    train_trace_init(&t);
    assert_true(traced(&t, 1));
    train_trace_begin(&t, 2);
    train_trace_enter_piece(&t, TRAIN_DOING_FORWARD, 0, 0);
    train_trace_enter_piece(&t, TRAIN_DOING_FORWARD, 0, 1);
    train_trace_drop(&t);
    assert_int_equal(t.count, 1);
    assert_true(traced(&t, 2));
    assert_true(traced(&t, 3));
    train_trace_begin(&t, 4);
    train_trace_back(&t, 1); /* steps after the first are done again */
    assert_int_equal(t.count, 1);
    assert_int_equal(t.spans[0].step, 1);
    assert_true(traced(&t, 2));
    train_trace_fini(&t);
}

/* A worker that comes in mid-run traces the steps that the others do. */
static void test_joins(void **state)
{
    struct train_trace t;

    (void)state;
    train_trace_init(&t);
    assert_false(traced(&t, 157));
    assert_true(traced(&t, 200));
    train_trace_fini(&t);
    train_trace_init(&t);
    assert_true(traced(&t, 300));
    train_trace_fini(&t);
}

/* The step for which there is no room is left out as a whole, those before it stay. */
static void test_full(void **state)
{
    struct train_trace t;
    int kept;

    (void)state;
    train_trace_init(&t);
    assert_true(traced(&t, 1));
    kept = t.count;
    train_trace_begin(&t, 2);
    for (int i = 0; i < 100000; i++)
        train_trace_enter_piece(&t, TRAIN_DOING_FORWARD, 0, i);
    assert_false(t.armed);
    train_trace_past(&t, TRAIN_DOING_WAIT, 1);
    train_trace_end(&t);
    assert_int_equal(t.count, kept);
    assert_true(traced(&t, 3));
    train_trace_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_clock),
        cmocka_unit_test(test_which_steps),
        cmocka_unit_test(test_joins),
        cmocka_unit_test(test_a_step_that_never_was),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
