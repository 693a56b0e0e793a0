/* SPDX-License-Identifier: MIT
 *
 * What a server makes of messages, without a network: the worker is the one of its own process.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/strategies/ps/server_private.h"

enum { WORKERS = 3, SERVERS = 2, BATCH = 24, SAMPLES = 240 };

static void begin(struct ps_server *v)
{
    *v = (struct ps_server){.size = WORKERS,
                            .servers = SERVERS,
                            .progress = {.batch = BATCH},
                            .sequencer = {.workers = WORKERS}};
    base_mutex_init(&v->lock);
    base_signal_init(&v->changed);
    ps_ledger_init(&v->progress.ledger, 0, SAMPLES);
    ps_sequencer_init(&v->sequencer, BATCH, 0, SAMPLES, NULL, 0);
}

static void end(struct ps_server *v)
{
    base_signal_fini(&v->changed);
    base_mutex_fini(&v->lock);
}

/* The job diverges while one of two servers has a worker's push: the worker is sent home when the
 * second one has it, too, whichever of them is first. */
static void test_diverged_between(void **state)
{
    struct ps_server v;

    (void)state;
    begin(&v);
    v.sequencer.of[0].work = TRAIN_WORKS;
    ps_server_take_got(&v, 0, PS_ACCEPTED);
    assert_false(v.answered);
    v.diverged = true;
    ps_server_take_got(&v, 0, PS_ACCEPTED);
    assert_true(v.answered);
    assert_true(v.answer.over && v.answer.diverged);
    assert_int_equal(v.sequencer.of[0].work, TRAIN_LEFT);
    end(&v);
}

/* Entry 5 of a leg from sample 24 on, in which samples up to 40 and 48 … 55 are in the weights by
 * entry 4; entry 6 is known, with samples 64 … 71. */
static void begin_log(struct ps_server *v, struct train_log_entry *waiting,
                      struct train_log_entry *good)
{
    begin(v);
    v->progress.began.cursor = 24;
    ps_ledger_init(&v->progress.ledger, 24, SAMPLES);
    ps_ledger_done(&v->progress.ledger, (struct train_span){24, 16});
    ps_ledger_done(&v->progress.ledger, (struct train_span){48, 8});
    v->applied = 4;
    *waiting = (struct train_log_entry){.number = 6, .lr = 0.1, .update = 6, .count = 1};
    waiting->of[0] = (struct train_outline){.rank = 1, .block = {64, 8}};
    v->log = waiting;
    v->log_count = 1;
    *good = (struct train_log_entry){.number = 5, .lr = 0.1, .update = 5, .count = 2};
    good->of[0] = (struct train_outline){.rank = 0, .block = {40, 8}};
    good->of[1] = (struct train_outline){.rank = 2, .block = {56, 8}};
}

static void test_entries(void **state)
{
    struct train_log_entry waiting, good, e;
    struct ps_server v;

    (void)state;
    begin_log(&v, &waiting, &good);
    assert_true(ps_server_is_entry(&v, &good));
    assert_true(ps_server_is_entry(&v, &waiting)); /* it may be told of again */
    e = good;
    e.of[1].block = (struct train_span){SAMPLES, 0}; /* a share may be empty */
    assert_true(ps_server_is_entry(&v, &e));
    e = good;
    e.number = 4;
    e.of[0].block.from = 24; /* applied */
    assert_true(ps_server_is_entry(&v, &e));
    e = good;
    e.number = 4 + WORKERS;
    assert_true(ps_server_is_entry(&v, &e));
    e.number++; /* no log is as long */
    assert_false(ps_server_is_entry(&v, &e));
    e.number = UINT64_MAX;
    assert_false(ps_server_is_entry(&v, &e));
    e.number = 0;
    assert_false(ps_server_is_entry(&v, &e));
    e = good;
    e.lr = NAN;
    assert_false(ps_server_is_entry(&v, &e));
    e = good;
    e.update = 0;
    assert_false(ps_server_is_entry(&v, &e));
    e = good;
    e.count = 0;
    assert_false(ps_server_is_entry(&v, &e));
    e.count = WORKERS + 1;
    assert_false(ps_server_is_entry(&v, &e));
    for (int rank = 0; rank < 4; rank++) { /* not twice, and none that is not there */
        e = good;
        e.of[1].rank = rank;
        assert_int_equal(ps_server_is_entry(&v, &e), rank == 1 || rank == 2);
    }
    e = good;
    e.of[0].rank = 2;
    e.of[1].rank = 1;
    assert_false(ps_server_is_entry(&v, &e));
    end(&v);
}

static void test_blocks_of_entries(void **state)
{
    static const struct train_span wrong[] = {
        {23, 1},             /* before the leg */
        {SAMPLES - 7, 8},    /* after it */
        {SAMPLES + 1, 0},    /* the same */
        {INT64_MAX / 2, 1},  /* far away */
        {40, INT64_MAX / 2}, /* endless */
        {24, 8},             /* done, below the mark … */
        {39, 2},             /* … in part … */
        {48, 8},             /* … above the mark … */
        {55, 1},             /* … the last sample … */
        {41, 8},             /* … in part … */
        {41, 100},           /* … in the middle */
        {60, 2},             /* of the other worker of this entry */
        {71, 3},             /* of the entry that waits */
    };
    struct train_log_entry waiting, good;
    struct ps_server v;

    (void)state;
    begin_log(&v, &waiting, &good);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct train_log_entry e = good;

        e.of[0].block = wrong[i];
        assert_false(ps_server_is_entry(&v, &e));
    }
    end(&v);
}

/* Single samples with holes between them: the ledger is never asked to keep more than it can. */
static void test_entries_of_holes(void **state)
{
    struct train_log_entry waiting, e;
    struct ps_server v;

    (void)state;
    begin_log(&v, &waiting, &e);
    v.log_count = 0;
    ps_ledger_init(&v.progress.ledger, 24, INT64_MAX / 2);
    e.count = 1;
    for (int64_t i = 0; i < (int64_t)2 * TRAIN_MAX_SPANS; i++) {
        e.of[0].block = (struct train_span){26 + 2 * i, 1};
        assert_int_equal(ps_server_is_entry(&v, &e), i < TRAIN_MAX_SPANS);
        if (i < TRAIN_MAX_SPANS)
            ps_ledger_done(&v.progress.ledger, e.of[0].block);
    }
    end(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diverged_between),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_blocks_of_entries),
        cmocka_unit_test(test_entries_of_holes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
