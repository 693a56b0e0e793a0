/* SPDX-License-Identifier: MIT
 *
 * The pace of the latest answers: percentiles, windows, and more answers than are kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "serve/recent.h"

static void test_empty(void **state)
{
    static struct serve_recent recent;
    struct serve_pace pace = serve_recent_pace(&recent, 5, 10);

    (void)state;
    assert_int_equal(pace.count, 0);
    assert_float_equal(pace.per_second, 0, 0);
    assert_float_equal(pace.p50, 0, 0);
    assert_float_equal(pace.p99, 0, 0);
}

/* 1 ms, 2 ms … 100 ms, one every 10 ms from second 50 on. */
static void test_percentiles(void **state)
{
    static struct serve_recent recent;
    struct serve_pace pace;

    (void)state;
    for (int i = 1; i <= 100; i++)
        serve_recent_add(&recent, 50 + i * 0.01, ((i * 37) % 100 + 1) * 1e-3);
    pace = serve_recent_pace(&recent, 51, 10);
    assert_int_equal(pace.count, 100);
    assert_float_equal(pace.per_second, 10, 1e-9);
    assert_float_equal(pace.p50, 0.050, 1e-9);
    assert_float_equal(pace.p99, 0.099, 1e-9);
    pace = serve_recent_pace(&recent, 51, 0.1 + 1e-6); /* the last ten, and the one at its edge */
    assert_in_range(pace.count, 10, 11);
    assert_int_equal(serve_recent_pace(&recent, 70, 10).count, 0);
}

/* Latencies that are no answer's: none, and longer than can be kept. */
static void test_extremes(void **state)
{
    static struct serve_recent recent;
    struct serve_pace pace;

    (void)state;
    serve_recent_add(&recent, 1, 0);
    serve_recent_add(&recent, 1, 1e9);
    pace = serve_recent_pace(&recent, 1, 10);
    assert_int_equal(pace.count, 2);
    assert_float_equal(pace.p50, 1e-5, 1e-9);
    assert_float_equal(pace.p99, 167.77215, 1e-6);
}

/* 4000 answers a second: the rate is that of the ones kept, not of the whole window. */
static void test_overwritten(void **state)
{
    static struct serve_recent recent;
    struct serve_pace pace;

    (void)state;
    for (int i = 0; i < 8000; i++)
        serve_recent_add(&recent, 100 + i / 4000.0, i < 6000 ? 1 : 1e-3);
    pace = serve_recent_pace(&recent, 102, 10);
    assert_int_equal(pace.count, SERVE_RECENT);
    assert_in_range(pace.per_second, 3900, 4100);
    assert_float_equal(pace.p50, 1e-3, 1e-9);
}

static void *add_many(void *recent)
{
    for (int i = 0; i < 10000; i++)
        serve_recent_add(recent, 7, 2e-3);
    return NULL;
}

static void test_threads(void **state)
{
    static struct serve_recent recent;
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &recent), 0);
    for (int i = 0; i < 50; i++)
        assert_in_range(serve_recent_pace(&recent, 8, 10).count, 0, SERVE_RECENT);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(serve_recent_pace(&recent, 8, 10).count, SERVE_RECENT);
    assert_float_equal(serve_recent_pace(&recent, 8, 10).p99, 2e-3, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),    cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_overwritten),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
