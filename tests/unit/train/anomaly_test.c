/* SPDX-License-Identifier: MIT
 *
 * The detector of slow workers on made-up series. Noise is as on a machine that other programs use
 * now and then: three per cent, what is slow tends to stay so for a moment (first-order
 * autoregressive), and one observation in fifty is a pause of up to twice the time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/anomaly.h"

enum { WORKERS = 4, WARM = 40 };

/* A cluster of workers that compute as many samples each, one second an observation. */
struct made {
    struct train_watch watch;
    struct base_rng rng;
    uint32_t drawn;
    int64_t step;
    double drift[COMM_MAX_WORKERS];
    double slow[COMM_MAX_WORKERS]; /* factor of the time, 1: usual */
    double noise;
    struct train_effort parts; /* of each added second, where it goes */
};

static void make(struct made *m, int size, uint32_t seed)
{
    *m = (struct made){.rng = base_rng_of(seed, BASE_STREAM_TEST, 0, 0, 0), .noise = 0.03};
    train_watch_begin(&m->watch, size, 0);
    for (int i = 0; i < size; i++)
        m->slow[i] = 1;
}

static double unit(struct made *m)
{
    return base_rng_unit(base_rng_u32(&m->rng, m->drawn++)) + 0x1p-25;
}

static double normal(struct made *m)
{
    double u = unit(m);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * unit(m));
}

/* One more step of a second; returns what was found. */
static int step(struct made *m, struct train_anomaly *found)
{
    struct train_effort efforts[COMM_MAX_WORKERS];

    for (int i = 0; i < m->watch.size; i++) {
        double usual, added;

        m->drift[i] = 0.3 * m->drift[i] + m->noise * sqrt(1 - 0.3 * 0.3) * normal(m);
        usual = exp(m->drift[i]) * (unit(m) < 0.02 ? 1 + unit(m) : 1) * (1 + 0.1 * i);
        added = (m->slow[i] - 1) * usual;
        efforts[i] = (struct train_effort){.samples = 64,
                                           .seconds = usual + added,
                                           .data = 0.05 * usual + added * m->parts.data,
                                           .stolen = 0.1 * usual + added * m->parts.stolen,
                                           .throttled = added * m->parts.throttled,
                                           .faults = added * m->parts.faults};
    }
    return train_watch_see(&m->watch, efforts, ++m->step, found);
}

/* Steps until worker `who` is found alone; -1: others were, or `most` were not enough. */
static int steps_until(struct made *m, int who, int most, struct train_anomaly *found)
{
    struct train_anomaly all[COMM_MAX_WORKERS];

    for (int i = 1; i <= most; i++) {
        int count = step(m, all);

        if (count > 0) {
            *found = all[0];
            return count == 1 && all[0].rank == who ? i : -1;
        }
    }
    return -1;
}

/* So many of 100 clusters in which a worker becomes `factor` times as slow are found in time. */
static int found_of_100(int size, double factor, int most)
{
    int good = 0;

    for (uint32_t seed = 0; seed < 100; seed++) {
        struct made m;
        struct train_anomaly a = {0};
        int who = (int)seed % size;

        make(&m, size, 1000 * (uint32_t)(100 * factor) + seed);
        steps_until(&m, -1, WARM + (int)seed, &a);
        m.slow[who] = factor;
        good +=
            steps_until(&m, who, most, &a) > 0 && !a.over && llabs(a.since - WARM - seed - 1) < 30;
    }
    return good;
}

static void test_slowdowns_are_found(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size *= 2) {
        assert_in_range(found_of_100(size, 1.3, 10), 95, 100);
        assert_in_range(found_of_100(size, 1.15, 60), 95, 100);
    }
}

/* Three hours of two workers and of four. */
static void test_false_alarms_are_rare(void **state)
{
    struct train_anomaly found[COMM_MAX_WORKERS];
    struct made m;
    int alarms = 0;

    (void)state;
    for (int size = 2; size <= 4; size *= 2)
        for (uint32_t seed = 0; seed < 3; seed++) {
            make(&m, size, 7000 + seed);
            for (int i = 0; i < 3600; i++)
                alarms += step(&m, found);
        }
    assert_in_range(alarms, 0, 1);
}

static void test_causes_are_named(void **state)
{
    static const struct {
        struct train_effort parts;
        enum train_cause cause;
    } cases[] = {
        {{.stolen = 1, .throttled = 0.9}, TRAIN_CAUSE_QUOTA},
        {{.stolen = 0.9, .faults = 2000}, TRAIN_CAUSE_MEMORY},
        {{.data = 0.8, .stolen = 0.1}, TRAIN_CAUSE_DATA},
        {{.stolen = 0.8, .throttled = 0.1}, TRAIN_CAUSE_STOLEN},
        {{.stolen = 0.1, .faults = 3}, TRAIN_CAUSE_COMPUTE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint32_t seed = 0; seed < 10; seed++) {
            struct made m;
            struct train_anomaly a = {0};

            make(&m, 4, 100 + seed);
            assert_int_equal(steps_until(&m, -1, WARM, &a), -1);
            m.slow[2] = 2;
            m.parts = cases[i].parts;
            assert_in_range(steps_until(&m, 2, 10, &a), 1, 10);
            assert_int_equal(a.cause, cases[i].cause);
            assert_true(a.past > 1.3 && a.past < 3.5 && a.peers > 1.3 && a.peers < 3.5);
            assert_in_range(a.since, WARM - 8, WARM + 4);
        }
}

/* A worker that is fast again is told once; one that comes and goes is told three times in all. */
static void test_a_worker_comes_back(void **state)
{
    struct made m;
    struct train_anomaly a = {0};

    (void)state;
    make(&m, 3, 5);
    steps_until(&m, -1, WARM, &a);
    for (int times = 1; times <= 3; times++) {
        m.slow[1] = 1.6;
        assert_in_range(steps_until(&m, 1, 12, &a), 1, 12);
        assert_false(a.over);
        assert_int_equal(a.cause == TRAIN_CAUSE_FLAPPING, times == 3);
        m.slow[1] = 1;
        assert_in_range(steps_until(&m, 1, 12, &a), 1, 12);
        assert_true(a.over && a.past < 0.8);
    }
    m.slow[1] = 1.6;
    assert_int_equal(steps_until(&m, 1, 60, &a), -1);
}

/* All become slow together, one becomes fast, one tells nothing: no worker is slow. */
static void test_peers_are_the_measure(void **state)
{
    struct made m;
    struct train_anomaly a = {0};
    struct train_effort efforts[2] = {{.samples = 64, .seconds = 1}};

    (void)state;
    make(&m, 2, 6);
    steps_until(&m, -1, WARM, &a);
    m.slow[0] = m.slow[1] = 2;
    assert_int_equal(steps_until(&m, 0, 60, &a), -1);
    make(&m, 2, 7);
    m.slow[1] = 2;
    steps_until(&m, -1, WARM, &a);
    m.slow[1] = 1;
    assert_int_equal(steps_until(&m, 0, 60, &a), -1);
    train_watch_begin(&m.watch, 2, 0);
    for (int i = 1; i <= 60; i++, efforts[0].seconds *= 1.1)
        assert_int_equal(train_watch_see(&m.watch, efforts, i, &a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slowdowns_are_found),   cmocka_unit_test(test_false_alarms_are_rare),
        cmocka_unit_test(test_causes_are_named),      cmocka_unit_test(test_a_worker_comes_back),
        cmocka_unit_test(test_peers_are_the_measure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
