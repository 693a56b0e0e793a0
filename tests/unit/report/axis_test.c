/* SPDX-License-Identifier: MIT
 *
 * Axes: round limits that contain the values, ticks in order and inside, texts that differ; also
 * for values that are equal, tiny, huge, negative, or not for logarithms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "report/axis.h"

static struct report_axis fitted(double low, double high, enum report_scale scale)
{
    struct report_axis a;

    report_axis_fit(low, high, scale, 6, &a);
    return a;
}

static void assert_ticks(const struct report_axis *a, int count, const double *ticks,
                         const char *const *texts)
{
    char text[REPORT_TICK_TEXT];

    assert_int_equal(a->count, count);
    for (int i = 0; i < count; i++) {
        assert_true(fabs(a->at[i] - ticks[i]) <= 1e-9 * fabs(ticks[i]));
        report_axis_text(a, a->at[i], text);
        assert_string_equal(text, texts[i]);
    }
}

static void test_round_numbers(void **state)
{
    struct report_axis a = fitted(0.03, 0.97, REPORT_LINEAR);

    (void)state;
    assert_ticks(&a, 6, (const double[]){0, 0.2, 0.4, 0.6, 0.8, 1},
                 (const char *const[]){"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
    a = fitted(1, 3, REPORT_WHOLE);
    assert_ticks(&a, 3, (const double[]){1, 2, 3}, (const char *const[]){"1", "2", "3"});
    a = fitted(0, 45000, REPORT_LINEAR);
    assert_ticks(&a, 6, (const double[]){0, 10000, 20000, 30000, 40000, 50000},
                 (const char *const[]){"0", "10 k", "20 k", "30 k", "40 k", "50 k"});
    a = fitted(-3, 1, REPORT_LINEAR);
    assert_ticks(&a, 5, (const double[]){-3, -2, -1, 0, 1},
                 (const char *const[]){"-3", "-2", "-1", "0", "1"});
}

static void test_logarithms(void **state)
{
    struct report_axis a = fitted(1, 10, REPORT_LOG);

    (void)state;
    assert_true(a.log);
    assert_ticks(&a, 4, (const double[]){1, 2, 5, 10}, (const char *const[]){"1", "2", "5", "10"});
    a = fitted(100, 1e4, REPORT_LOG);
    assert_ticks(&a, 7, (const double[]){100, 200, 500, 1000, 2000, 5000, 1e4},
                 (const char *const[]){"100", "200", "500", "1000", "2000", "5000", "10 k"});
    a = fitted(3, 4e6, REPORT_LOG);
    assert_true(a.count >= 3 && a.low <= 3 && a.high >= 4e6);
    assert_true(fabs(report_axis_place(&a, a.low) - 0) <= 1e-12);
    assert_true(fabs(report_axis_place(&a, a.high) - 1) <= 1e-12);
    assert_true(fabs(report_axis_place(&a, -1) - 0) <= 0);
    assert_false(fitted(0, 10, REPORT_LOG).log); /* there is no logarithm of 0 */
    assert_false(fitted(-1, 10, REPORT_LOG).log);
}

/* Whatever the values, the axis is one. */
static void test_any_values(void **state)
{
    static const double values[] = {2e-290, 0,           -0.0,    1,      -1,   1e-300,
                                    5e-324, 1e300,       1.7e308, -1e308, 1e15, 1e15 + 1,
                                    0.1,    0.1 + 1e-17, 99.97,   98.6};
    enum { COUNT = sizeof values / sizeof *values };

    (void)state;
    for (int i = 0; i < COUNT * COUNT * 3; i++) {
        double x = values[i % COUNT], y = values[i / COUNT % COUNT];
        struct report_axis a = fitted(x, y, (enum report_scale)(i / COUNT / COUNT));
        char before[REPORT_TICK_TEXT] = "", text[REPORT_TICK_TEXT];

        assert_true(isfinite(a.low) && isfinite(a.high) && a.low < a.high);
        assert_in_range(a.count, 1, REPORT_MAX_TICKS);
        if (fabs(x) < 1e299 && fabs(y) < 1e299) {
            double slip = 1e-290 + 1e-9 * fmax(fabs(x), fabs(y));

            assert_true(a.low <= fmin(x, y) + slip && a.high >= fmax(x, y) - slip);
        }
        for (int t = 0; t < a.count; t++) {
            assert_true(t == 0 || a.at[t] > a.at[t - 1]);
            report_axis_text(&a, a.at[t], text);
            assert_string_not_equal(text, before);
            strcpy(before, text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_numbers),
        cmocka_unit_test(test_logarithms),
        cmocka_unit_test(test_any_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
