/* SPDX-License-Identifier: MIT
 *
 * Holds against a model of single floats: which version is covered, and what every worker has after
 * the transfers. Random holds by seed, and the cases that strategies make.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/holds.h"

enum { WORKERS = 5, FLOATS = 12 };

static const uint64_t SIZE[TRAIN_GROUPS] = {FLOATS, FLOATS, 3};

static void hold(struct train_holds *holds, enum train_group group, uint64_t from, uint64_t count,
                 int64_t step)
{
    holds->at[holds->count++] =
        (struct train_hold){.group = group, .from = from, .count = count, .version = {step, 0}};
}

static void hold_all(struct train_holds *holds, int64_t step)
{
    for (int group = 0; group < TRAIN_GROUPS; group++)
        hold(holds, (enum train_group)group, 0, SIZE[group], step);
}

static bool has(const struct train_holds *holds, uint32_t group, uint64_t at,
                struct train_version version)
{
    for (uint32_t i = 0; i < holds->count; i++) {
        const struct train_hold *h = &holds->at[i];

        if (h->group == group && at >= h->from && at - h->from < h->count &&
            train_version_compare(h->version, version) == 0)
            return true;
    }
    return false;
}

static bool is_covered(const struct train_holds *held, struct train_version version)
{
    for (uint32_t group = 0; group < TRAIN_GROUPS; group++) {
        for (uint64_t at = 0; at < SIZE[group]; at++) {
            int rank = 0;

            while (rank < WORKERS && !has(&held[rank], group, at, version))
                rank++;
            if (rank == WORKERS)
                return false;
        }
    }
    return true;
}

/* Every float that is wanted and not there comes once, from the lowest rank that has it. */
static void check_transfers(const struct train_holds *held, const struct train_holds *wanted,
                            struct train_version version)
{
    static int got[WORKERS][TRAIN_GROUPS][FLOATS];
    struct train_transfer *list;
    size_t count = train_holds_transfers(held, wanted, WORKERS, version, &list);

    memset(got, 0, sizeof got);
    for (size_t i = 0; i < count; i++) {
        const struct train_transfer *t = &list[i];

        assert_true(t->count > 0);
        for (uint64_t at = t->from; at < t->from + t->count; at++) {
            got[t->target][t->group][at]++;
            assert_true(has(&held[t->source], t->group, at, version));
            assert_false(has(&held[t->target], t->group, at, version));
        }
        for (int lower = 0; lower < t->source; lower++)
            assert_false(has(&held[lower], t->group, t->from, version));
    }
    for (int rank = 0; rank < WORKERS; rank++)
        for (uint32_t group = 0; group < TRAIN_GROUPS; group++)
            for (uint64_t at = 0; at < SIZE[group]; at++) {
                bool wants = false;

                for (uint32_t i = 0; i < wanted[rank].count; i++)
                    wants |= wanted[rank].at[i].group == group && at >= wanted[rank].at[i].from &&
                             at - wanted[rank].at[i].from < wanted[rank].at[i].count;
                assert_int_equal(got[rank][group][at],
                                 wants && !has(&held[rank], group, at, version));
            }
    base_free(list);
}

/* Disjoint ranges of each group, as a place gives them. */
static void random_wishes(const struct base_rng *rng, uint32_t *index, struct train_holds *holds)
{
    for (int group = 0; group < TRAIN_GROUPS; group++)
        for (uint64_t at = 0; at < SIZE[group];) {
            uint64_t count = 1 + base_rng_u32(rng, (*index)++) % FLOATS;

            if (count > SIZE[group] - at)
                count = SIZE[group] - at;
            if (base_rng_u32(rng, (*index)++) % 2 == 0)
                hold(holds, (enum train_group)group, at, count, -1);
            at += count;
        }
}

static void random_holds(const struct base_rng *rng, uint32_t *index, struct train_holds *holds)
{
    uint32_t count = base_rng_u32(rng, (*index)++) % 16;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = base_rng_u32(rng, (*index)++) % TRAIN_GROUPS;
        uint64_t from = base_rng_u32(rng, (*index)++) % (2 * SIZE[group]);
        uint64_t length;

        from = from < SIZE[group] ? from : 0; /* the first float often */
        length = SIZE[group] - from - base_rng_u32(rng, (*index)++) % (SIZE[group] - from);

        hold(holds, (enum train_group)group, from, length, base_rng_u32(rng, (*index)++) % 3);
    }
}

static void test_random(void **state)
{
    int covered = 0, uncovered = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct base_rng rng = base_rng_of(seed, BASE_STREAM_TEST, 0, 0, 0);
        struct train_holds held[WORKERS] = {0}, wanted[WORKERS] = {0};
        struct train_version version = {-7, -7};
        uint32_t index = 0;
        int64_t newest = 2;
        bool any;

        for (int rank = 0; rank < WORKERS; rank++) {
            random_holds(&rng, &index, &held[rank]);
            random_wishes(&rng, &index, &wanted[rank]);
        }
        while (newest >= 0 && !is_covered(held, (struct train_version){newest, 0}))
            newest--;
        any = train_holds_committed(held, WORKERS, SIZE, &version);
        assert_int_equal(any, newest >= 0);
        if (any) {
            assert_int_equal(version.step, newest);
            check_transfers(held, wanted, version);
        }
        covered += any;
        uncovered += !any;
    }
    assert_true(covered > 1000); /* both kinds were met */
    assert_true(uncovered > 1000);
}

/* Data parallel: one worker is a step ahead, one is new. */
static void test_whole(void **state)
{
    struct train_holds held[WORKERS] = {0}, wanted[WORKERS] = {0};
    struct train_version version;
    struct train_transfer *list;

    (void)state;
    hold_all(&held[0], 6);
    hold_all(&held[1], 7);
    hold_all(&held[2], 7);
    hold_all(&held[4], 7);
    for (int rank = 0; rank < WORKERS; rank++)
        hold_all(&wanted[rank], -1);
    assert_true(train_holds_committed(held, WORKERS, SIZE, &version));
    assert_int_equal(version.step, 7);
    assert_int_equal(train_holds_transfers(held, wanted, WORKERS, version, &list), 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(list[i].source, 1);
        assert_int_equal(list[i].target, i < 3 ? 0 : 3);
    }
    base_free(list);
}

/* Slices: the newest step is complete only while its one holder of a slice is there. */
static void test_slices(void **state)
{
    struct train_holds held[2] = {0};
    struct train_version version;

    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        hold(&held[rank], TRAIN_WEIGHTS, 6 * (uint64_t)rank, 6, 9);
        hold(&held[rank], TRAIN_SLOTS, 6 * (uint64_t)rank, 6, 9);
        hold(&held[rank], TRAIN_STATISTICS, 0, 3, 9);
    }
    assert_true(train_holds_committed(held, 2, SIZE, &version));
    assert_false(train_holds_committed(held, 1, SIZE, &version));
    hold_all(&held[0], 8); /* a spare copy of the step before */
    assert_true(train_holds_committed(held, 1, SIZE, &version));
    assert_int_equal(version.step, 8);
}

static void test_versions(void **state)
{
    (void)state;
    assert_int_equal(
        train_version_compare((struct train_version){3, 0}, (struct train_version){2, 9}), 1);
    assert_int_equal(
        train_version_compare((struct train_version){3, 0}, (struct train_version){3, 1}), -1);
    assert_int_equal(
        train_version_compare((struct train_version){3, 1}, (struct train_version){3, 1}), 0);
}

/* Worker 0 has judged the epoch of step 3; worker 1, which lost another meanwhile, has not, and has
 * the only copy of the second half. The epoch's turn changes no weight: what counts is the newer
 * version, and worker 1 keeps its half. Statistics may have changed. */
static void test_turn_of_an_epoch(void **state)
{
    struct train_holds held[WORKERS] = {0}, wanted[WORKERS] = {0};
    struct train_version version, newer = {3, 1};
    struct train_transfer *list = NULL;

    (void)state;
    for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++) {
        hold(&held[0], g, 0, FLOATS / 2, 3);
        hold(&held[1], g, FLOATS / 2, FLOATS / 2, 3);
        hold(&wanted[0], g, 0, FLOATS / 2, 0);
        hold(&wanted[1], g, FLOATS / 2, FLOATS / 2, 0);
    }
    for (int rank = 0; rank < 2; rank++) {
        hold(&held[rank], TRAIN_STATISTICS, 0, SIZE[TRAIN_STATISTICS], 3);
        hold(&wanted[rank], TRAIN_STATISTICS, 0, SIZE[TRAIN_STATISTICS], 0);
    }
    for (uint32_t i = 0; i < held[0].count; i++)
        held[0].at[i].version = newer;
    assert_true(train_holds_committed(held, 2, SIZE, &version));
    assert_int_equal(train_version_compare(version, newer), 0);
    assert_int_equal(train_holds_transfers(held, wanted, 2, version, &list), 1);
    assert_int_equal(list[0].group, TRAIN_STATISTICS);
    assert_int_equal(list[0].source, 0);
    base_free(list);
    /* What a worker has at the very version is given to those that are behind. */
    hold(&held[0], TRAIN_WEIGHTS, FLOATS / 2, 2, 3);
    held[0].at[held[0].count - 1].version = newer;
    assert_int_equal(train_holds_transfers(held, wanted, 2, version, &list), 2);
    base_free(list);
    held[0].at[0].version = (struct train_version){2, 1}; /* another step is another value */
    assert_false(train_holds_committed(held, 2, SIZE, &version));
}

static void test_invalid(void **state)
{
    struct train_holds holds = {0};

    (void)state;
    hold_all(&holds, 0);
    assert_true(train_holds_valid(&holds, SIZE));
    holds.at[2].count = 4; /* one past the statistics */
    assert_false(train_holds_valid(&holds, SIZE));
    holds.at[2] = (struct train_hold){.group = TRAIN_GROUPS};
    assert_false(train_holds_valid(&holds, SIZE));
    holds.at[2] = (struct train_hold){.from = 2, .count = UINT64_MAX};
    assert_false(train_holds_valid(&holds, SIZE));
    holds.count = TRAIN_MAX_HOLDS + 1;
    assert_false(train_holds_valid(&holds, SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),  cmocka_unit_test(test_whole),
        cmocka_unit_test(test_slices),  cmocka_unit_test(test_versions),
        cmocka_unit_test(test_invalid), cmocka_unit_test(test_turn_of_an_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
