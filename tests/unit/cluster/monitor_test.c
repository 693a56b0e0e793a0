/* SPDX-License-Identifier: MIT
 *
 * The monitor: texts of /proc, wrong ones too, and this very process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/monitor.h"

static void assert_near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-9);
}

static void test_stat(void **state)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

    (void)state;
    assert_near(cluster_monitor_parse_stat(
                    "12 (a b) c) R 1 2 3 4 5 4194304 100 0 2 0 150 50 0 0 20 0 1 0 9"),
                200 * tick);
    assert_true(cluster_monitor_parse_stat("") < 0);
    assert_true(cluster_monitor_parse_stat("12 (x) R 1 2 3") < 0);
    assert_true(cluster_monitor_parse_stat("12 x R 1 2 3 4 5 6 7 8 9 10 11 12 13") < 0);
}

static void test_cpu(void **state)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK), all;

    (void)state;
    assert_near(cluster_monitor_parse_cpu("cpu  10 0 20 60 5 1 2 2 0 0\ncpu0 1 2", &all),
                35 * tick);
    assert_near(all, 100 * tick);
    assert_true(cluster_monitor_parse_cpu("cpu 1 2", &all) < 0);
    assert_true(cluster_monitor_parse_cpu("", &all) < 0);
}

static void test_memory(void **state)
{
    (void)state;
    assert_near(cluster_monitor_parse_memory("MemTotal: 100 kB\nMemFree: 1 kB\n"
                                             "MemAvailable:      40 kB\n"),
                60 * 1024);
    assert_true(cluster_monitor_parse_memory("MemTotal: 100 kB\n") < 0);
    assert_true(cluster_monitor_parse_memory("MemTotal: 1 kB\nMemAvailable: 2 kB\n") < 0);
}

static void test_oom(void **state)
{
    (void)state;
    assert_int_equal(cluster_monitor_parse_oom("low 0\noom 5\noom_kill 3\noom_group_kill 0\n"), 3);
    assert_int_equal(cluster_monitor_parse_oom("oom_kill_disable 0\nunder_oom 0\noom_kill 12\n"),
                     12);
    assert_int_equal(cluster_monitor_parse_oom("oom_kill 0"), 0);
    assert_int_equal(cluster_monitor_parse_oom(""), -1);
    assert_int_equal(cluster_monitor_parse_oom("oom_kill_disable 0\nunder_oom 0\n"), -1);
    assert_int_equal(cluster_monitor_parse_oom("oom_kill x\n"), -1);
    assert_int_equal(cluster_monitor_parse_oom("no oom_kill 7\n"), -1);
    assert_true(cluster_monitor_parse_throttled("nr_periods 9\nthrottled_usec 1500000\n") == 1.5);
    assert_true(cluster_monitor_parse_throttled("nr_throttled 3\nthrottled_time 2000000000\n") ==
                2);
    assert_true(cluster_monitor_parse_throttled("usage_usec 7\n") == -1);
    assert_true(cluster_monitor_parse_throttled("throttled_usec x\n") == -1);
    assert_true(cluster_monitor_parse_squeezed("some avg10=0.50 avg60=1.00 avg300=0.00 "
                                               "total=2500000\nfull avg10=0.00 total=9\n") == 2.5);
    assert_true(cluster_monitor_parse_squeezed("some avg10=0.50 total=7\n") == -1);
    assert_true(cluster_monitor_parse_squeezed("") == -1);
    assert_true(cluster_monitor_parse_waited("92497 500000000 2\n") == 0.5);
    assert_true(cluster_monitor_parse_waited("92497\n") == -1);
}

static void test_process(void **state)
{
    struct cluster_monitor m = {0};
    struct cluster_load load = {0};
    double start = base_now();
    volatile double sum = 0;

    (void)state;
    cluster_monitor_process(&m, getpid(), start, &load);
    assert_true(load.cpu == 0 && load.memory > 1e5);
    while (base_thread_cpu() < 0.2)
        sum += 1;
    cluster_monitor_process(&m, getpid(), base_now(), &load);
    assert_true(load.cpu > 0 && load.cpu < 1.5);
    cluster_monitor_process(&m, -1, base_now() + 1, &load);
    assert_true(load.cpu == 0 && load.memory == 0);
}

static void test_host(void **state)
{
    struct cluster_monitor m = {0};
    struct cluster_load load = {0};

    (void)state;
    cluster_monitor_host(&m, &load);
    assert_true(load.cpu == 0 && load.memory > 1e6 && load.load >= 0);
}

static void test_step(void **state)
{
    struct cluster_monitor m = {0};
    struct cluster_load load = {0};

    (void)state;
    cluster_monitor_step(&m, -1, 10.0, &load);
    assert_true(load.step == -1 && load.step_rate == 0);
    cluster_monitor_step(&m, 4, 12.0, &load);
    assert_near(load.step_rate, 2.5);
    cluster_monitor_step(&m, 2, 13.0, &load); /* a step that goes back has no rate of its own */
    assert_true(load.step == 2 && load.step_rate == 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat), cmocka_unit_test(test_cpu),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_oom),  cmocka_unit_test(test_process), cmocka_unit_test(test_host),
        cmocka_unit_test(test_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
