/* SPDX-License-Identifier: MIT
 *
 * How far another process says that a leg has come: what cannot be is not believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/strategies/ps/progress.h"

enum { BATCH = 24, SAMPLES = 121 };

/* Samples 24 … 39, 48 … 55 and the last one are done. */
static struct train_progress good(void)
{
    struct train_progress p = {.began = {.step = 11, .cursor = 24, .seen = 24}, .batch = BATCH};

    ps_ledger_init(&p.ledger, 24, SAMPLES);
    ps_ledger_done(&p.ledger, (struct train_span){24, 16});
    ps_ledger_done(&p.ledger, (struct train_span){48, 8});
    ps_ledger_done(&p.ledger, (struct train_span){SAMPLES - 1, 1});
    p.outcome.seen = 25;
    return p;
}

static void test_can_be(void **state)
{
    struct train_progress p = good();

    (void)state;
    assert_true(ps_progress_can_be(&p, BATCH, SAMPLES));
    assert_false(ps_progress_can_be(&p, BATCH, SAMPLES - 1));
    assert_false(ps_progress_can_be(&p, BATCH + 1, SAMPLES));
    ps_ledger_done(&p.ledger, (struct train_span){40, 8});
    ps_ledger_done(&p.ledger, (struct train_span){56, SAMPLES - 57});
    assert_true(ps_ledger_complete(&p.ledger));
    assert_true(ps_progress_can_be(&p, BATCH, SAMPLES));
}

static void test_cannot_be(void **state)
{
    struct train_progress p;
    int64_t *const counts[] = {
        &p.began.step,           &p.began.seen,          &p.began.correct,
        &p.outcome.seen,         &p.outcome.correct,     &p.began.cursor,
        &p.ledger.low,           &p.ledger.end,          &p.ledger.done[0].from,
        &p.ledger.done[0].count, &p.ledger.done[1].from, &p.ledger.done[1].count};
    static const int64_t wrong[] = {INT64_MIN, -1, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            p = good();
            *counts[i] = wrong[j];
            assert_false(ps_progress_can_be(&p, BATCH, SAMPLES));
        }
    for (int count = -1; count <= TRAIN_MAX_SPANS + 1; count += TRAIN_MAX_SPANS + 2) {
        p = good();
        p.ledger.done_count = count;
        assert_false(ps_progress_can_be(&p, BATCH, SAMPLES));
    }
    p = good();
    p.ledger.done[0].from = 40; /* it touches what is done below it */
    assert_false(ps_progress_can_be(&p, BATCH, SAMPLES));
    p = good();
    p.ledger.done[0] = p.ledger.done[1]; /* twice */
    assert_false(ps_progress_can_be(&p, BATCH, SAMPLES));
    p = good();
    p.ledger.done[1].count = 0;
    assert_false(ps_progress_can_be(&p, BATCH, SAMPLES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_can_be),
        cmocka_unit_test(test_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
