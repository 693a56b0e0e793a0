/* SPDX-License-Identifier: MIT
 *
 * A worker's running mean moves with results that count, and with no others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "train/momentum.h"

enum { FLOATS = 3 };

struct room {
    struct train_momentum momentum;
    float mean[FLOATS], values[FLOATS + 1]; /* the last is a statistic */
};

static void deliver(struct room *r, float change)
{
    for (int i = 0; i <= FLOATS; i++)
        r->values[i] = change;
    train_momentum_smooth(&r->momentum, r->mean, r->values);
    assert_true(r->values[FLOATS] == change);
}

static void end_round(struct room *r, bool counts)
{
    r->momentum.counts = counts;
    train_momentum_commit(&r->momentum, r->mean);
}

static void test_it_moves_with_what_counts(void **state)
{
    struct room r = {0};

    (void)state;
    assert_int_equal(train_momentum_open(&r.momentum, 0.75, r.mean, FLOATS), BASE_OK);
    deliver(&r, 8);
    assert_true(r.values[0] == 8); /* it begins with the first */
    end_round(&r, false);
    assert_true(r.mean[0] == 0 && !r.momentum.begun);
    deliver(&r, 8);
    end_round(&r, true);
    assert_true(r.mean[2] == 8);
    deliver(&r, 4);
    assert_true(r.values[0] == 7 && r.mean[0] == 8);
    deliver(&r, 0); /* another block of the same round: the newest counts */
    end_round(&r, true);
    assert_true(r.mean[0] == 6);
    end_round(&r, true); /* a round in which it had no result */
    assert_true(r.mean[0] == 6);
    /* A view is lost after the round's end was told, and the next one's state has the round. */
    deliver(&r, 2);
    r.momentum.counts = true;
    train_momentum_commit(&r.momentum, r.mean);
    assert_int_equal(train_momentum_open(&r.momentum, 0.75, r.mean, FLOATS), BASE_OK);
    assert_true(r.momentum.begun && r.mean[1] == 5);
    train_momentum_fini(&r.momentum);
}

static void test_without_it_changes_go_as_they_are(void **state)
{
    struct train_momentum m = {0};
    float values[] = {1, 2};

    (void)state;
    assert_int_equal(train_momentum_open(&m, 0, NULL, 2), BASE_OK);
    train_momentum_smooth(&m, NULL, values);
    train_momentum_commit(&m, NULL);
    assert_true(values[0] == 1 && values[1] == 2 && m.next == NULL);
    train_momentum_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_moves_with_what_counts),
        cmocka_unit_test(test_without_it_changes_go_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
