/* SPDX-License-Identifier: MIT
 *
 * Which number of workers a plan takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/plan_parts.h"

static const struct train_forecast slow = {.usual = true, .seconds = 1.0}, ring = {.seconds = 0.94},
                                   fast_ring = {.seconds = 0.80},
                                   ddp = {.usual = true, .seconds = 0.97},
                                   frail = {.seconds = 0.1, .cost = {.frail = true}},
                                   slow_frail = {.seconds = 0.2, .cost = {.frail = true}};

static int chosen_of(const struct train_forecast *one, const struct train_forecast *two,
                     const struct train_forecast *four)
{
    const struct cli_plan_part parts[] = {{.batch = 64, .forecasts = {.choice = one}},
                                          {.batch = 64, .forecasts = {.choice = two}},
                                          {.batch = 64, .forecasts = {.choice = four}}},
                               *chosen = cli_plan_choose(parts, 3);

    return chosen != NULL ? (int)(chosen - parts) : -1;
}

static void test_usual_ones_stay(void **state)
{
    (void)state;
    assert_int_equal(chosen_of(&slow, &ring, NULL), 0);
    assert_int_equal(chosen_of(&slow, &fast_ring, NULL), 1);
    assert_int_equal(chosen_of(&slow, &ddp, &ring), 1); /* of two usual ones the faster */
    assert_int_equal(chosen_of(NULL, &ring, &fast_ring), 2);
    assert_int_equal(chosen_of(NULL, NULL, NULL), -1);
}

/* However fast it is, unless nothing else fits. */
static void test_frail_ones_come_last(void **state)
{
    (void)state;
    assert_int_equal(chosen_of(&frail, &ring, NULL), 1);
    assert_int_equal(chosen_of(&ring, &frail, NULL), 0);
    assert_int_equal(chosen_of(NULL, &slow_frail, &frail), 2);
    assert_int_equal(chosen_of(NULL, &frail, &slow_frail), 1);
}

/* Twice the samples in the same time. */
static void test_batches_of_different_sizes(void **state)
{
    const struct cli_plan_part parts[] = {{.batch = 32, .forecasts = {.choice = &slow}},
                                          {.batch = 64, .forecasts = {.choice = &slow}}};

    (void)state;
    assert_ptr_equal(cli_plan_choose(parts, 2), &parts[1]);
    assert_true(cli_plan_pace(&parts[1]) == 1.0 / 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_ones_stay),
        cmocka_unit_test(test_frail_ones_come_last),
        cmocka_unit_test(test_batches_of_different_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
