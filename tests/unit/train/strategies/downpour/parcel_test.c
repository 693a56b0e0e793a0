/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/strategies/downpour/parcel.h"

enum { FLOATS = 300, STATISTICS = 5, ALL = FLOATS + STATISTICS };

struct room {
    struct train_team team;
    struct downpour_parcel parcel;
    float residual[FLOATS];
    float values[ALL], came[ALL];
    double sent[FLOATS], got[FLOATS]; /* of the parcels that count */
};

static void set_up(struct room *r, const char *wire, int rank, int size)
{
    *r = (struct room){.team.exchange = {.rank = rank, .size = size}};
    assert_int_equal(
        downpour_parcel_open(&r->parcel, wire, &r->team, r->residual, FLOATS, STATISTICS), BASE_OK);
    assert_true(downpour_parcel_packs(&r->parcel));
}

/* A block is computed, the n-th, and its change packed and unpacked. */
static size_t deliver(struct room *r, uint32_t n)
{
    struct base_rng rng = base_rng_of(5, BASE_STREAM_TEST, n, 0, 0);
    size_t length;

    for (uint32_t i = 0; i < ALL; i++)
        r->values[i] = base_rng_unit(base_rng_u32(&rng, i)) - 0.3f;
    length = downpour_parcel_pack(&r->parcel, r->values);
    assert_int_equal(downpour_parcel_unpack(&r->parcel.wiring, r->parcel.bytes, length, r->came,
                                            FLOATS, STATISTICS),
                     BASE_OK);
    assert_memory_equal(r->came + FLOATS, r->values + FLOATS, STATISTICS * sizeof(float));
    return length;
}

static void settle(struct room *r, bool counts)
{
    downpour_parcel_settle(&r->parcel, counts);
    for (int i = 0; counts && i < FLOATS; i++) {
        r->sent[i] += (double)r->values[i];
        r->got[i] += (double)r->came[i];
    }
}

/* What has come and what is left are together what was sent. */
static void check(const struct room *r)
{
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabs(r->got[i] + (double)r->residual[i] - r->sent[i]) < 1e-4);
}

static void test_feedback(void **state)
{
    static const char *const wires[] = {"int8", "int4", "bf16", "topk/share=0.1/bits=3"};

    (void)state;
    for (size_t w = 0; w < sizeof wires / sizeof *wires; w++) {
        struct room r;

        set_up(&r, wires[w], 1, 3);
        for (uint32_t round = 0; round < 6; round++) {
            deliver(&r, 3 * round); /* of some rounds two blocks count, and one does not */
            settle(&r, true);
            deliver(&r, 3 * round + 1);
            settle(&r, false);
            deliver(&r, 3 * round + 2);
            settle(&r, round % 2 == 0);
            downpour_parcel_commit(&r.parcel, r.residual);
            check(&r);
        }
        downpour_parcel_fini(&r.parcel);
    }
}

/* After a lost view: the same bytes again; what counted in a round that goes on still does, and
 * nothing of one that begins anew. */
static void test_views(void **state)
{
    struct room r;
    uint8_t first[2 * ALL * sizeof(float)];
    size_t length;

    (void)state;
    set_up(&r, "topk/share=0.1", 2, 3);
    deliver(&r, 1);
    settle(&r, true);
    downpour_parcel_commit(&r.parcel, r.residual);
    length = deliver(&r, 2);
    memcpy(first, r.parcel.bytes, length);
    downpour_parcel_close(&r.parcel); /* no answer has come */
    assert_int_equal(
        downpour_parcel_open(&r.parcel, "topk/share=0.1", &r.team, r.residual, FLOATS, STATISTICS),
        BASE_OK);
    assert_int_equal(deliver(&r, 2), length);
    assert_memory_equal(r.parcel.bytes, first, length);
    settle(&r, true);
    downpour_parcel_close(&r.parcel); /* the manager has it */
    assert_int_equal(
        downpour_parcel_open(&r.parcel, "topk/share=0.1", &r.team, r.residual, FLOATS, STATISTICS),
        BASE_OK);
    downpour_parcel_commit(&r.parcel, r.residual);
    check(&r);
    deliver(&r, 3);
    downpour_parcel_settle(&r.parcel, true);
    downpour_parcel_forget(&r.parcel); /* with its manager */
    downpour_parcel_commit(&r.parcel, r.residual);
    check(&r);
    downpour_parcel_fini(&r.parcel);
}

static void reopen(struct room *r, int rank, int size)
{
    downpour_parcel_close(&r->parcel);
    r->team.exchange = (struct train_exchange){.rank = rank, .size = size};
    assert_int_equal(downpour_parcel_open(&r->parcel, size > 1 ? "int8" : NULL, &r->team,
                                          r->residual, FLOATS, STATISTICS),
                     BASE_OK);
}

/* Rank 0's residual is of the update, and remains what the weights lack, however many workers come
 * and go. Another worker's is of its change, of which each counts one N-th. */
static void test_units(void **state)
{
    struct room r;

    (void)state;
    set_up(&r, "int8", 0, 3);
    r.residual[7] = 2;
    reopen(&r, 0, 2);
    assert_true(r.residual[7] == 2);
    reopen(&r, 0, 1);
    reopen(&r, 0, 4);
    assert_true(r.residual[7] == 2);
    reopen(&r, 1, 4); /* another worker manages */
    assert_true(r.residual[7] == 8);
    reopen(&r, 1, 2);
    assert_true(r.residual[7] == 8);
    reopen(&r, 0, 2);
    assert_true(r.residual[7] == 4);
    downpour_parcel_fini(&r.parcel);
    assert_true(r.residual[7] == 4);
}

/* Of a checkpoint each of N workers has the mean: together they lack that much, also if the one
 * that has it is joined by others, which begin with zeros. */
static void test_units_of_checkpoint(void **state)
{
    struct room r = {.residual[7] = 6};

    (void)state;
    reopen(&r, 2, 3);
    assert_true(r.residual[7] == 6);
    downpour_parcel_fini(&r.parcel);
    reopen(&r, 0, 3);
    assert_true(r.residual[7] == 2);
    downpour_parcel_fini(&r.parcel);
    r.residual[7] = 6;
    reopen(&r, 0, 1);
    reopen(&r, 0, 2);
    assert_true(r.residual[7] == 6);
    downpour_parcel_fini(&r.parcel);
}

/* Rank 0's update: what it leaves out becomes the residual when the round is committed. Packed once
 * more after a loss, it is the same; committed by another worker's word, too. */
static void test_update(void **state)
{
    struct room r;
    float base[FLOATS] = {0}, weights[FLOATS], first[FLOATS];

    (void)state;
    set_up(&r, "int4", 0, 1);
    deliver(&r, 1);
    for (uint32_t round = 0; round < 4; round++) {
        float before[FLOATS];

        memcpy(before, r.residual, sizeof before);
        for (int attempt = 0; attempt < 2; attempt++) {
            memcpy(weights, r.values, sizeof weights);
            assert_int_equal(downpour_parcel_share(&r.parcel, base, weights), BASE_OK);
            assert_memory_equal(r.residual, before, sizeof before);
            if (attempt == 0)
                memcpy(first, weights, sizeof first);
        }
        assert_memory_equal(weights, first, sizeof first);
        if (round == 2)
            downpour_parcel_close(&r.parcel);
        downpour_parcel_commit(&r.parcel, r.residual);
        if (round == 2)
            assert_int_equal(
                downpour_parcel_open(&r.parcel, "int4", &r.team, r.residual, FLOATS, STATISTICS),
                BASE_OK);
        for (int i = 0; i < FLOATS; i++) {
            r.sent[i] += (double)r.values[i];
            r.got[i] += (double)weights[i];
        }
        check(&r);
    }
    downpour_parcel_fini(&r.parcel);
}

static void test_bad_bytes(void **state)
{
    struct room r;
    size_t length;

    (void)state;
    set_up(&r, "int8", 1, 2);
    length = deliver(&r, 1);
    for (size_t wrong = 0; wrong < length; wrong++)
        assert_int_equal(downpour_parcel_unpack(&r.parcel.wiring, r.parcel.bytes, wrong, r.came,
                                                FLOATS, STATISTICS),
                         BASE_ERR_DATA);
    r.values[FLOATS / 2] = NAN;
    length = downpour_parcel_pack(&r.parcel, r.values);
    assert_int_equal(downpour_parcel_unpack(&r.parcel.wiring, r.parcel.bytes, length, r.came,
                                            FLOATS, STATISTICS),
                     BASE_ERR_DATA);
    r.values[FLOATS / 2] = 0;
    for (int i = 0; i < STATISTICS; i++) {
        r.values[FLOATS + i] = i % 2 == 0 ? NAN : INFINITY;
        length = downpour_parcel_pack(&r.parcel, r.values);
        assert_int_equal(downpour_parcel_unpack(&r.parcel.wiring, r.parcel.bytes, length, r.came,
                                                FLOATS, STATISTICS),
                         BASE_ERR_DATA);
        r.values[FLOATS + i] = 0;
    }
    downpour_parcel_settle(&r.parcel, false);
    downpour_parcel_commit(&r.parcel, r.residual);
    for (int i = 0; i < FLOATS; i++)
        assert_true(isfinite(r.residual[i]));
    downpour_parcel_fini(&r.parcel);
    assert_int_equal(downpour_parcel_open(&r.parcel, "int9", &r.team, NULL, FLOATS, STATISTICS),
                     BASE_ERR_USAGE);
    downpour_parcel_fini(&r.parcel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feedback), cmocka_unit_test(test_views),
        cmocka_unit_test(test_units),    cmocka_unit_test(test_units_of_checkpoint),
        cmocka_unit_test(test_update),   cmocka_unit_test(test_bad_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
