/* SPDX-License-Identifier: MIT
 *
 * Work dealt by measured speed: equally at first, by rates once they differ enough, never nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "train/deal.h"

static double share(const struct train_deal *deal, int rank)
{
    return (double)(deal->begin[rank + 1] - deal->begin[rank]) / TRAIN_DEAL;
}

static void is_whole(const struct train_deal *deal)
{
    assert_int_equal(deal->begin[0], 0);
    assert_int_equal(deal->begin[deal->size], TRAIN_DEAL);
    for (int r = 0; r < deal->size; r++)
        assert_true(deal->begin[r + 1] > deal->begin[r]);
}

static void test_equal_workers_keep_equal_shares(void **state)
{
    struct train_deal deal;
    double rates[COMM_MAX_WORKERS];

    (void)state;
    for (int size = 1; size <= COMM_MAX_WORKERS; size++) {
        train_deal_equally(&deal, size);
        is_whole(&deal);
        for (int r = 0; r < size; r++) {
            assert_true(fabs(share(&deal, r) - 1.0 / size) < 2.0 / TRAIN_DEAL);
            rates[r] = r % 2 == 0 ? 1e6 : 1.1e6; /* not enough of a difference */
        }
        assert_false(train_deal_again(&deal, rates));
        is_whole(&deal);
    }
}

static void test_a_slow_worker_gets_less(void **state)
{
    const double rates[] = {300, 100, 300}, same[] = {200, 200, 200};
    struct train_deal deal;

    (void)state;
    train_deal_equally(&deal, 3);
    assert_true(train_deal_again(&deal, rates));
    is_whole(&deal);
    assert_true(fabs(share(&deal, 1) - (0.1 / 3 + 0.9 / 7)) < 1e-4);
    assert_true(fabs(share(&deal, 0) - share(&deal, 2)) < 1e-4);
    assert_false(train_deal_again(&deal, rates)); /* it is as it should be */
    for (int i = 0; i < 10; i++)                  /* the worker has recovered */
        train_deal_again(&deal, same);
    assert_true(fabs(share(&deal, 1) - 1.0 / 3) < 0.15 / 3);
}

static void test_rates_that_are_not_known(void **state)
{
    const double none[] = {300, 0}, bad[] = {300, NAN}, stalled[] = {300, 1e-9};
    struct train_deal deal;

    (void)state;
    train_deal_equally(&deal, 2);
    assert_false(train_deal_again(&deal, none));
    assert_false(train_deal_again(&deal, bad));
    assert_true(fabs(share(&deal, 1) - 0.5) < 1e-4);
    assert_true(train_deal_again(&deal, stalled));
    is_whole(&deal);
    assert_true(share(&deal, 1) > 0.049 && share(&deal, 1) < 0.051);
    assert_false(train_deal_again(&deal, none)); /* the last that is known counts */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_workers_keep_equal_shares),
        cmocka_unit_test(test_a_slow_worker_gets_less),
        cmocka_unit_test(test_rates_that_are_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
