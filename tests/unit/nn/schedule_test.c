/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "nn/schedule.h"
#include "support/nets.h"

static const struct nn_schedule *find(const char *name)
{
    const struct nn_schedule *schedule;

    assert_int_equal(nn_schedule_find(name, &schedule), BASE_OK);
    return schedule;
}

static void shapes(void **state)
{
    struct nn_schedule_setup setup = {
        .total = 101, .period = 30, .decay = 0.1, .final_factor = 0.01};

    (void)state;
    support_near(nn_schedule_factor(find("constant"), &setup, 77), 1, 0);
    support_near(nn_schedule_factor(find("step"), &setup, 29), 1, 1e-12);
    support_near(nn_schedule_factor(find("step"), &setup, 30), 0.1, 1e-12);
    support_near(nn_schedule_factor(find("step"), &setup, 99), 0.001, 1e-12);
    support_near(nn_schedule_factor(find("cosine"), &setup, 0), 1, 1e-12);
    support_near(nn_schedule_factor(find("cosine"), &setup, 50), 0.505, 1e-12);
    support_near(nn_schedule_factor(find("cosine"), &setup, 100), 0.01, 1e-12);
    support_near(nn_schedule_factor(find("exponential"), &setup, 0), 1, 1e-12);
    support_near(nn_schedule_factor(find("exponential"), &setup, 50), 0.1, 1e-12);
    support_near(nn_schedule_factor(find("exponential"), &setup, 100), 0.01, 1e-12);
    support_near(nn_schedule_factor(find("one-cycle"), &setup, 0), 0.04, 1e-12);
    support_near(nn_schedule_factor(find("one-cycle"), &setup, 30), 1, 1e-12);
    support_near(nn_schedule_factor(find("one-cycle"), &setup, 100), 0.01, 1e-12);
    setup.period = 0;
    support_near(nn_schedule_factor(find("step"), &setup, 99), 1, 0);
}

static void warm_up_comes_first(void **state)
{
    struct nn_schedule_setup setup = {.total = 111, .warmup = 9, .final_factor = 0};
    double before = 0;

    (void)state;
    support_near(nn_schedule_factor(find("constant"), &setup, 0), 0.1, 1e-12);
    support_near(nn_schedule_factor(find("constant"), &setup, 8), 0.9, 1e-12);
    support_near(nn_schedule_factor(find("cosine"), &setup, 9), 1, 1e-12);
    support_near(nn_schedule_factor(find("cosine"), &setup, 110), 0, 1e-12);
    for (uint64_t step = 0; step < 9; step++) {
        double factor = nn_schedule_factor(find("cosine"), &setup, step);

        assert_true(factor > before);
        before = factor;
    }
}

/* Runs of no length, and steps after the end: always a number. */
static void odd_lengths(void **state)
{
    struct nn_schedule_setup setup = {.total = 1, .final_factor = 0.5, .period = 1, .decay = 0.5};

    (void)state;
    for (size_t i = 0; i < nn_schedule_count; i++)
        for (uint64_t warmup = 0; warmup < 4; warmup++)
            for (uint64_t step = 0; step < 6; step++) {
                double factor;

                setup.warmup = warmup;
                factor = nn_schedule_factor(nn_schedule_registry[i], &setup, step);
                assert_true(factor > 0 && factor <= 1);
            }
}

static void unknown_name(void **state)
{
    const struct nn_schedule *schedule;

    (void)state;
    assert_int_equal(nn_schedule_find("cosin", &schedule), BASE_ERR_USAGE);
    assert_null(schedule);
    assert_non_null(strstr(base_message(), "did you mean 'cosine'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(warm_up_comes_first),
        cmocka_unit_test(odd_lengths),
        cmocka_unit_test(unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
