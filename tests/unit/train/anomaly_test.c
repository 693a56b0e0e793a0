/* SPDX-License-Identifier: MIT
 *
 * The detector of slow workers on made-up series; how good it is tests/sim/slowdowns shows. Noise
 * is as on a machine that other programs use now and then: three per cent, what is slow tends to
 * stay so for a moment (first-order autoregressive), and one observation in fifty is a pause of up
 * to twice the time.
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
    struct train_link *links;  /* of each step, or NULL */
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
                                           .still = added * m->parts.still,
                                           .throttled = added * m->parts.throttled,
                                           .memory = added * m->parts.memory};
    }
    m->step++;
    return train_watch_tell(&m->watch, efforts)
               ? train_watch_see(&m->watch, m->links, m->step, found)
               : 0;
}

/* Steps until worker `who` is found alone; -1: others were, or `most` were not enough. */
static int steps_until(struct made *m, int who, int most, struct train_anomaly *found)
{
    struct train_anomaly all[COMM_MAX_WORKERS * TRAIN_ASPECTS];

    for (int i = 1; i <= most; i++) {
        int count = step(m, all);

        if (count > 0) {
            *found = all[0];
            return count == 1 && all[0].rank == who ? i : -1;
        }
    }
    return -1;
}

static void test_causes_are_named(void **state)
{
    static const struct {
        struct train_effort parts;
        enum train_cause cause;
    } cases[] = {
        {{.stolen = 1, .throttled = 0.9}, TRAIN_CAUSE_QUOTA},
        {{.still = 0.9, .memory = 0.8}, TRAIN_CAUSE_MEMORY},
        {{.data = 0.8, .stolen = 0.1}, TRAIN_CAUSE_DATA},
        {{.stolen = 0.8, .throttled = 0.1}, TRAIN_CAUSE_STOLEN},
        {{.still = 0.9, .stolen = 0.1}, TRAIN_CAUSE_STALLS},
        {{.stolen = 0.1, .memory = 0.1}, TRAIN_CAUSE_COMPUTE},
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
    for (int i = 1; i <= 60; i++, efforts[0].seconds *= 1.1) {
        assert_true(train_watch_tell(&m.watch, efforts));
        assert_int_equal(train_watch_see(&m.watch, NULL, i, &a), 0);
    }
}

/* A ring of four: both links of worker 2 become three times as slow, then as they were. */
static void test_slow_links_are_found(void **state)
{
    struct train_link links[4 * 4] = {0};
    struct made m;
    struct train_anomaly a = {0};

    (void)state;
    make(&m, 4, 8);
    m.links = links;
    for (int i = 0; i < 4; i++)
        links[i * 4 + (i + 1) % 4] = (struct train_link){0.2 + 0.01 * i, 1e7};
    assert_int_equal(steps_until(&m, -1, WARM, &a), -1);
    links[2 * 4 + 3].seconds = links[1 * 4 + 2].seconds = 0.6;
    assert_in_range(steps_until(&m, 2, 10, &a), 1, 10);
    assert_int_equal(a.aspect, TRAIN_ASPECT_LINK);
    assert_int_equal(a.cause, TRAIN_CAUSE_LINK);
    assert_true(a.peers > 2.5 && a.peers < 3.5 && a.past > 2.5 && a.past < 3.5);
    links[2 * 4 + 3].seconds = links[1 * 4 + 2].seconds = 0.2;
    assert_in_range(steps_until(&m, 2, 12, &a), 1, 12);
    assert_true(a.over && a.aspect == TRAIN_ASPECT_LINK);
    links[2 * 4 + 3].seconds = 0.6; /* whose the fault is cannot be told of one link */
    assert_int_equal(steps_until(&m, 2, 30, &a), -1);
}

/* Two workers have the same link: one speaks for both, and there is no peer to compare with. */
static void test_a_link_of_two_is_found_once(void **state)
{
    struct train_link links[2 * 2] = {{0}, {0.2, 1e7}, {0.2, 1e7}, {0}};
    struct made m;
    struct train_anomaly a = {0};

    (void)state;
    make(&m, 2, 9);
    m.links = links;
    assert_int_equal(steps_until(&m, -1, WARM, &a), -1);
    links[1].seconds = links[2].seconds = 0.5;
    assert_in_range(steps_until(&m, 1, 10, &a), 1, 10);
    assert_true(a.cause == TRAIN_CAUSE_LINK && isnan(a.peers) && a.past > 2 && a.past < 3);
    links[1].bytes = links[2].bytes = 100; /* too few to tell of speed */
    assert_int_equal(steps_until(&m, 1, 30, &a), -1);
}

/* Each third step a worker stands still for one and a half; a single time is none. */
static void test_stalls_are_found(void **state)
{
    struct made m;
    struct train_anomaly a = {0};
    int steps = 0;

    (void)state;
    make(&m, 4, 10);
    m.parts.still = 1;
    assert_int_equal(steps_until(&m, -1, WARM, &a), -1);
    m.slow[1] = 6;
    assert_int_equal(steps_until(&m, 1, 1, &a), -1);
    m.slow[1] = 1;
    assert_int_equal(steps_until(&m, 1, 60, &a), -1);
    for (int found = -1; found < 0; steps++) {
        assert_in_range(steps, 0, 9);
        m.slow[1] = steps % 3 == 0 ? 2.5 : 1;
        found = steps_until(&m, 1, 1, &a);
    }
    assert_int_equal(a.aspect, TRAIN_ASPECT_STALLS);
    assert_int_equal(a.cause, TRAIN_CAUSE_STALLS);
    assert_true(!a.over && a.explained > 0.7 && a.past > 1.2);
    m.slow[1] = 1;
    assert_in_range(steps_until(&m, 1, 120, &a), 20, 120);
    assert_true(a.over && a.aspect == TRAIN_ASPECT_STALLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes_are_named),
        cmocka_unit_test(test_a_worker_comes_back),
        cmocka_unit_test(test_peers_are_the_measure),
        cmocka_unit_test(test_slow_links_are_found),
        cmocka_unit_test(test_a_link_of_two_is_found_once),
        cmocka_unit_test(test_stalls_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
