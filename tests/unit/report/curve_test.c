/* SPDX-License-Identifier: MIT
 *
 * Curves in bins: means, lows and highs are those of all points, however many there were; points
 * can be taken back; quotients are of sums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "report/curve.h"

static void add_many(struct report_curve *c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        report_curve_add(c, (double)i, 2 * (double)i, i == 77 ? -5 : (double)(i % 10));
}

static void check(size_t count)
{
    struct report_curve c = {0};
    double sum = 0, times = 0, low = INFINITY, high = -INFINITY, last = -1;
    size_t points = 0;

    add_many(&c, count);
    assert_true(c.count <= REPORT_CURVE_BINS);
    assert_true(c.count > REPORT_CURVE_BINS / 2 || c.count == count);
    for (size_t i = 0; i < c.count; i++) {
        assert_true(c.bins[i].first > last);
        assert_true(i + 1 == c.count || c.bins[i].count == c.per_bin);
        last = c.bins[i].first;
        sum += c.bins[i].y;
        times += c.bins[i].time;
        low = fmin(low, c.bins[i].low);
        high = fmax(high, c.bins[i].high);
        points += c.bins[i].count;
    }
    assert_int_equal(points, count);
    assert_true(times == (double)count * (double)(count - 1));
    assert_true(low == (count > 77 ? -5 : 0) && high == fmin(9, (double)count - 1));
    if (count % 10 == 0)
        assert_true(sum == 4.5 * (double)count - (count > 77 ? 12 : 0));
    report_curve_fini(&c);
}

static void test_bins(void **state)
{
    static const size_t counts[] = {1, 2, 511, 512, 513, 1024, 1025, 5000, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        check(counts[i]);
}

static void test_not_finite(void **state)
{
    struct report_curve c = {0};

    (void)state;
    report_curve_add(&c, 1, 1, NAN);
    report_curve_add(&c, NAN, 1, 1);
    report_curve_add(&c, 1, INFINITY, 1);
    assert_int_equal(c.count, 0);
    report_curve_drop_after(&c, 0);
    report_curve_fini(&c);
}

static void test_drop(void **state)
{
    struct report_curve c = {0};

    (void)state;
    add_many(&c, 100);
    report_curve_drop_after(&c, 49);
    assert_int_equal(c.count, 50);
    report_curve_add(&c, 50, 100, 7);
    assert_int_equal(c.count, 51);
    assert_true(c.bins[50].y == 7);
    report_curve_drop_after(&c, -1);
    assert_int_equal(c.count, 0);
    report_curve_fini(&c);
}

/* Where points share bins, none after x is left, and fewer than a bin of those before it go. */
static void test_drop_in_bins(void **state)
{
    struct report_curve c = {0};
    size_t points = 0;

    (void)state;
    add_many(&c, 5000);
    assert_true(c.per_bin > 1);
    report_curve_drop_after(&c, 2501);
    for (size_t i = 0; i < c.count; i++)
        points += c.bins[i].count;
    assert_true(points <= 2502 && points + c.per_bin > 2502);
    assert_true(c.bins[c.count - 1].last == (double)points - 1);
    for (size_t i = points; i < 5000; i++) /* done again: the bins are as if never taken back */
        report_curve_add(&c, (double)i, 0, 0);
    assert_true(c.bins[c.count - 1].last == 4999);
    assert_true(c.bins[c.count - 2].count == c.per_bin);
    report_curve_fini(&c);
}

static void test_divide(void **state)
{
    struct report_curve top = {0}, bottom = {0}, q;

    (void)state;
    for (int i = 0; i < 1000; i++) { /* 1 of 1 and 3 of 9: together 4 of 10 */
        report_curve_add(&top, i, i, i % 2 == 0 ? 1 : 3);
        report_curve_add(&bottom, i, i, i % 2 == 0 ? 1 : 9);
    }
    report_curve_divide(&top, &bottom, 128, &q);
    assert_true(q.count <= 128 && q.count > 60);
    for (size_t i = 0; i < q.count; i++)
        assert_true(fabs(q.bins[i].y / (double)q.bins[i].count - 0.4) < 1e-12);
    assert_true(top.count > 128); /* it is as it was */
    report_curve_fini(&q);
    report_curve_add(&bottom, 1000, 1000, 1);
    report_curve_drop_after(&top, -1);
    report_curve_divide(&top, &bottom, 128, &q);
    assert_int_equal(q.count, 0);
    report_curve_fini(&q);
    report_curve_fini(&top);
    report_curve_fini(&bottom);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins),   cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_drop),   cmocka_unit_test(test_drop_in_bins),
        cmocka_unit_test(test_divide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
