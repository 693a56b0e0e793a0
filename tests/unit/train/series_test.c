/* SPDX-License-Identifier: MIT
 *
 * When the level of a series changes, and when it does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "train/series.h"

static const double UNIT = 0.05;

/* The step of an observation that scatters by UNIT, the same each time. */
static struct train_seen seen_at(int step, double shift)
{
    double value = shift + UNIT * sin(2.4 * step) * sqrt(2);

    return (struct train_seen){value, value, {.samples = 64, .seconds = exp(value)}, step};
}

static int warm_up(struct train_series *s, int steps)
{
    for (int i = 1; i <= steps; i++) {
        const struct train_seen seen = seen_at(i, 0);

        assert_int_equal(train_series_see(s, &seen, UNIT).count, 0);
    }
    return steps;
}

static void test_shifts_are_found(void **state)
{
    static const double shifts[] = {0.15, 0.3, 1, -0.15, -1};

    (void)state;
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        struct train_series s = {0};
        struct train_shift c = {0};
        int steps = warm_up(&s, 60), step = steps;

        while (c.count == 0) {
            const struct train_seen seen = seen_at(++step, shifts[i]);

            assert_in_range(step - steps, 1, fabs(shifts[i]) > 0.2 ? 6 : 12);
            c = train_series_see(&s, &seen, UNIT);
        }
        assert_in_range(c.count, 4, step - steps + 3);
        assert_in_range(c.since, steps - 2, steps + 4);
        assert_true(fabs(c.value - shifts[i]) < 0.05 && fabs(c.own_before) < 0.05);
        assert_true(c.effort.samples == 64 * c.count);
        assert_true(fabs(s.level) < 0.03);
        train_series_settle(&s, &c);
        assert_true(fabs(s.level - shifts[i]) < 0.05);
        for (int k = 1; k <= 60; k++) { /* the new level is the usual one */
            const struct train_seen seen = seen_at(step + k, shifts[i]);

            assert_int_equal(train_series_see(&s, &seen, UNIT).count, 0);
        }
    }
}

static void test_pauses_and_trifles_are_none(void **state)
{
    struct train_series s = {0};
    int step;

    (void)state;
    step = warm_up(&s, 60);
    for (int i = 1; i <= 200; i++) { /* each 30th takes five times as long */
        const struct train_seen seen = seen_at(step + i, i % 30 == 0 ? 1.6 : 0);

        assert_int_equal(train_series_see(&s, &seen, UNIT).count, 0);
    }
    for (int i = 1; i <= 100; i++) {
        const struct train_seen seen = {.value = 0.015, .own = 0.015, .effort = {1, 1}};

        assert_int_equal(train_series_see(&s, &seen, 1e-9).count, 0);
    }
}

/* Nothing is known of the first observations, whatever they are. */
static void test_levels_are_learnt(void **state)
{
    struct train_series s = {0};
    const struct train_series *list[] = {&s, &s};

    (void)state;
    assert_true(train_series_scatter(list, 2) == 0);
    for (int i = 1; i <= 15; i++) {
        const struct train_seen seen = seen_at(i, i % 2);

        assert_int_equal(train_series_see(&s, &seen, UNIT).count, 0);
        assert_false(s.known);
    }
    s = (struct train_series){0};
    warm_up(&s, 128);
    assert_int_equal(s.recent_count, 48);
    assert_true(train_series_scatter(list, 2) > 0.02 && train_series_scatter(list, 2) < 0.12);
    assert_true(fabs(s.usual.seconds - 1.0 / 64) < 0.002);
    assert_false(train_series_stirs(&s, UNIT));
    for (int i = 0; i < 3; i++) {
        const struct train_seen seen = seen_at(200 + i, 0.5);

        assert_int_equal(train_series_see(&s, &seen, UNIT).count, 0);
    }
    assert_true(train_series_stirs(&s, UNIT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shifts_are_found),
        cmocka_unit_test(test_pauses_and_trifles_are_none),
        cmocka_unit_test(test_levels_are_learnt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
