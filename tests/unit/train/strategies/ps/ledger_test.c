/* SPDX-License-Identifier: MIT
 *
 * A ledger against a plain array: every sample is done once, whatever order blocks end in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/strategies/ps/ledger.h"

static void test_in_order(void **state)
{
    struct ps_ledger l;
    struct train_span block;

    (void)state;
    ps_ledger_init(&l, 10, 25);
    for (int64_t from = 10; from < 25; from += 6) {
        assert_true(ps_ledger_issue(&l, 6, &block));
        assert_int_equal(block.from, from);
        assert_int_equal(block.count, from + 6 <= 25 ? 6 : 25 - from);
        assert_false(ps_ledger_complete(&l));
        ps_ledger_done(&l, block);
        assert_int_equal(l.low, from + block.count);
    }
    assert_true(ps_ledger_complete(&l));
    assert_false(ps_ledger_issue(&l, 6, &block));
}

static void test_holes_come_first(void **state)
{
    struct ps_ledger l;
    struct train_span a, b, c, again;

    (void)state;
    ps_ledger_init(&l, 0, 100);
    assert_true(ps_ledger_issue(&l, 10, &a));
    assert_true(ps_ledger_issue(&l, 10, &b));
    assert_true(ps_ledger_issue(&l, 10, &c));
    ps_ledger_done(&l, c);
    assert_int_equal(l.low, 0);
    assert_int_equal(ps_ledger_top(&l), 30);
    ps_ledger_return(&l, b);
    assert_true(ps_ledger_issue(&l, 4, &again)); /* a part of what was returned */
    assert_int_equal(again.from, 10);
    assert_int_equal(again.count, 4);
    assert_true(ps_ledger_issue(&l, 100, &b)); /* up to what is done */
    assert_int_equal(b.from, 14);
    assert_int_equal(b.count, 6);
    ps_ledger_done(&l, a);
    assert_int_equal(l.low, 10);
    ps_ledger_done(&l, b);
    assert_int_equal(l.done_count, 1);
    ps_ledger_done(&l, again);
    assert_int_equal(l.low, 30);
    assert_int_equal(l.done_count, 0);
}

/* Workers take, finish and lose blocks at random. */
static void test_every_sample_once(void **state)
{
    enum { SAMPLES = 700, WORKERS = 9 };
    struct base_rng rng = base_rng_of(3, BASE_STREAM_SHUFFLE, 0, 0, 0);

    (void)state;
    for (uint32_t round = 0; round < 50; round++) {
        struct train_span held[WORKERS] = {0};
        int times[SAMPLES] = {0};
        struct ps_ledger l;
        uint32_t words[4], turn = 0;

        ps_ledger_init(&l, 0, SAMPLES);
        while (!ps_ledger_complete(&l)) {
            int w;

            base_rng_block(&rng, round << 16 | turn++, words);
            w = (int)(words[0] % WORKERS);
            if (held[w].count == 0) {
                if (!ps_ledger_issue(&l, 1 + words[1] % 30, &held[w]))
                    held[w].count = 0;
            } else if (words[2] % 4 == 0) {
                ps_ledger_return(&l, held[w]);
                held[w].count = 0;
            } else {
                for (int64_t i = 0; i < held[w].count; i++)
                    times[held[w].from + i]++;
                ps_ledger_done(&l, held[w]);
                held[w].count = 0;
            }
            for (int64_t i = 0; i < l.low; i++)
                assert_int_equal(times[i], 1);
            assert_true(turn < 60000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_holes_come_first),
        cmocka_unit_test(test_every_sample_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
