/* SPDX-License-Identifier: MIT
 *
 * The ledger of a round, and calls as bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "train/strategies/downpour/ledger.h"

enum { FLOATS = 5 };

static const struct downpour_round round_1 = {
    .number = 4, .epoch = 2, .cursor = 0, .step = 20, .goal = 30, .blocks = 3, .checksum = 77};
static const uint32_t counts[] = {10, 20, 10};
static struct downpour_ledger ledger;

static int begin(void **state)
{
    (void)state;
    downpour_ledger_begin(&ledger, &round_1, counts);
    return 0;
}

static int end(void **state)
{
    (void)state;
    downpour_ledger_fini(&ledger);
    return 0;
}

static struct downpour_call result_of(uint32_t block)
{
    return (struct downpour_call){
        .kind = DOWNPOUR_CALL_RESULT,
        .block = block,
        .round = round_1,
        .outcome = {.loss_sum = 3, .correct = 2, .seen = counts[block]},
    };
}

/* Values of the expected length, the first of which is `first`. */
static enum downpour_receipt deliver(uint32_t worker, const struct downpour_call *call, float first,
                                     size_t got, double now)
{
    float *values = NULL;
    enum downpour_receipt receipt;

    assert_int_equal(base_tensor(FLOATS, sizeof *values, "a test", &values), BASE_OK);
    values[0] = first;
    receipt = downpour_ledger_receive(&ledger, worker, call, &values, FLOATS, got, now);
    assert_true((receipt == DOWNPOUR_RECEIPT_COUNTS) == (values == NULL));
    base_free(values);
    return receipt;
}

static void test_each_block_counts_once(void **state)
{
    struct train_row rows[3];
    struct downpour_call call;

    (void)state;
    for (uint32_t worker = 1; worker <= 3; worker++)
        assert_int_equal(downpour_ledger_issue(&ledger, worker, false, worker - 1, 0), worker - 1);
    assert_int_equal(downpour_ledger_issue(&ledger, 4, false, 0, 0), -1);
    for (uint32_t block = 0; block < 3; block++) {
        assert_false(downpour_ledger_complete(&ledger, 1, 0, 1));
        call = result_of(block);
        assert_int_equal(deliver(block + 1, &call, 1, FLOATS, 1), DOWNPOUR_RECEIPT_COUNTS);
        assert_int_equal(deliver(9, &call, 1, FLOATS, 1), DOWNPOUR_RECEIPT_SURPLUS);
    }
    assert_true(downpour_ledger_complete(&ledger, 1, 0, 1));
    assert_int_equal(downpour_ledger_rows(&ledger, rows), 3);
    assert_int_equal(rows[1].worker, 2);
    assert_int_equal(rows[1].samples, 20);
    assert_true(fabs(rows[1].loss - 0.15) < 1e-12);
    assert_int_equal(downpour_ledger_outcome(&ledger).seen, 40);
    assert_int_equal(downpour_ledger_samples_of(&ledger, 2), 20);
    assert_int_equal(downpour_ledger_samples_of(&ledger, 9), 0);
    assert_int_equal(ledger.counts.surplus, 3);
    downpour_ledger_commit(&ledger, true);
    assert_int_equal(ledger.counts.rounds, 1);
    assert_int_equal(ledger.counts.left_out, 0);
}

static void test_rubbish_is_refused_and_the_block_goes_to_another_worker(void **state)
{
    struct downpour_call call = result_of(1);

    (void)state;
    assert_int_equal(downpour_ledger_issue(&ledger, 7, false, 1, 0), 1);
    assert_int_equal(deliver(7, &call, NAN, FLOATS, 1), DOWNPOUR_RECEIPT_REFUSED);
    assert_non_null(strstr(base_message(), "not finite"));
    downpour_ledger_blame(&ledger, 1, 7);
    downpour_ledger_release(&ledger, 1);
    assert_int_equal(deliver(7, &call, 1, FLOATS - 1, 1), DOWNPOUR_RECEIPT_REFUSED);
    downpour_ledger_blame(&ledger, 1, 7);
    assert_int_equal(downpour_ledger_issue(&ledger, 7, false, 1, 0), 2); /* anything but that */
    assert_int_equal(downpour_ledger_issue(&ledger, 8, false, 1, 0), 1);
    assert_int_equal(ledger.counts.reissued, 1);
    assert_false(downpour_ledger_hopeless(&ledger));
    call.outcome.seen--;
    assert_int_equal(deliver(8, &call, 1, FLOATS, 1), DOWNPOUR_RECEIPT_REFUSED);
    downpour_ledger_blame(&ledger, 1, 8);
    assert_true(downpour_ledger_hopeless(&ledger));
    assert_int_equal(ledger.counts.refused, 3);
}

static void test_what_is_not_of_this_round_is_refused(void **state)
{
    struct downpour_call wrong[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        wrong[i] = result_of(0);
    wrong[0].round.epoch++;
    wrong[1].round.checksum++;
    wrong[2].block = 3;
    wrong[3].round.number--; /* and the numbers of an older round */
    wrong[3].round.step--;
    wrong[4].outcome.loss_sum = NAN;
    wrong[5].outcome.correct = 11;
    for (int i = 0; i < 6; i++)
        assert_int_equal(deliver(1, &wrong[i], 1, FLOATS, 1), DOWNPOUR_RECEIPT_REFUSED);
    assert_int_equal(ledger.in, 0);
}

static void test_late_is_against_the_median_of_the_others(void **state)
{
    struct downpour_call first = result_of(0), second = result_of(1);

    (void)state;
    for (uint32_t worker = 1; worker <= 3; worker++)
        assert_int_equal(downpour_ledger_issue(&ledger, worker, false, worker - 1, 0), worker - 1);
    assert_int_equal(downpour_ledger_issue(&ledger, 4, false, 0, 1e6), -1); /* none came: unknown */
    assert_int_equal(deliver(1, &first, 1, FLOATS, 5), DOWNPOUR_RECEIPT_COUNTS);
    assert_int_equal(deliver(2, &second, 1, FLOATS, 10), DOWNPOUR_RECEIPT_COUNTS);
    assert_int_equal(downpour_ledger_issue(&ledger, 4, false, 0, 9.9), -1);  /* 0.5 s a sample */
    assert_int_equal(downpour_ledger_issue(&ledger, 3, false, 0, 10.1), -1); /* it has it itself */
    ledger.awaited = 3; /* whose block no other one gets */
    assert_int_equal(downpour_ledger_issue(&ledger, 4, false, 0, 10.1), -1);
    ledger.awaited = 0;
    assert_int_equal(downpour_ledger_issue(&ledger, 4, false, 0, 10.1), 2);
    assert_int_equal(downpour_ledger_issue(&ledger, 1, false, 0, 99), -1); /* two have it */
    assert_int_equal(ledger.counts.reissued, 1);
}

static void test_a_round_goes_on_in_the_next_view(void **state)
{
    struct downpour_call call = result_of(0), part = {.kind = DOWNPOUR_CALL_CONTINUE, .block = 2};

    (void)state;
    part.round = round_1;
    for (uint32_t worker = 1; worker <= 3; worker++)
        assert_int_equal(downpour_ledger_issue(&ledger, worker, false, worker - 1, 0), worker - 1);
    assert_int_equal(deliver(1, &call, 1, FLOATS, 1), DOWNPOUR_RECEIPT_COUNTS);
    downpour_ledger_begin(&ledger, &round_1, counts);
    assert_int_equal(ledger.in, 1);
    assert_true(downpour_ledger_resume(&ledger, 3, &part, 2));
    assert_false(downpour_ledger_resume(&ledger, 2, &part, 2));
    assert_int_equal(downpour_ledger_issue(&ledger, 2, false, 2, 2), 1);
    assert_int_equal(ledger.counts.reissued, 1);
}

static void test_a_block_is_kept_for_a_worker_that_has_not_asked(void **state)
{
    struct downpour_call call = result_of(0);

    (void)state;
    assert_true(downpour_ledger_reserve(&ledger, 2, 1, 0));
    assert_false(downpour_ledger_reserve(&ledger, 3, 1, 0));
    assert_int_equal(downpour_ledger_issue(&ledger, 1, false, 0, 0), 0);
    assert_int_equal(deliver(1, &call, 1, FLOATS, 5), DOWNPOUR_RECEIPT_COUNTS); /* 0.5 s a sample */
    assert_int_equal(downpour_ledger_issue(&ledger, 1, false, 0, 5), 2);
    call = result_of(2);
    assert_int_equal(deliver(1, &call, 1, FLOATS, 10), DOWNPOUR_RECEIPT_COUNTS);
    assert_int_equal(downpour_ledger_issue(&ledger, 4, false, 0, 14), -1);
    assert_int_equal(downpour_ledger_issue(&ledger, 4, false, 0, 21), 1); /* it never asked */
    downpour_ledger_claim(&ledger, 1);                                    /* now it does */
    assert_int_equal(ledger.counts.reissued, 1);
}

static void test_another_round_forgets(void **state)
{
    struct downpour_round other = round_1;
    struct downpour_call call = result_of(0);

    (void)state;
    assert_int_equal(deliver(1, &call, 1, FLOATS, 1), DOWNPOUR_RECEIPT_COUNTS);
    other.checksum++;
    downpour_ledger_begin(&ledger, &other, counts);
    assert_int_equal(ledger.in, 0);
    assert_int_equal(downpour_ledger_issue(&ledger, 1, false, 0, 2), 0);
}

static void test_empty_blocks_are_not_waited_for(void **state)
{
    const uint32_t some[] = {0, 5, 0};
    struct downpour_round other = round_1;
    struct downpour_call call = result_of(1);

    (void)state;
    other.step++;
    call.round = other;
    call.outcome = (struct train_outcome){1, 1, 5};
    downpour_ledger_begin(&ledger, &other, some);
    assert_int_equal(downpour_ledger_issue(&ledger, 1, false, 0, 0), 1);
    assert_int_equal(downpour_ledger_issue(&ledger, 2, false, 0, 0), -1);
    assert_int_equal(deliver(1, &call, 1, FLOATS, 1), DOWNPOUR_RECEIPT_COUNTS);
    assert_true(downpour_ledger_complete(&ledger, 1, 0, 1));
}

static void test_a_quorum_and_what_comes_late(void **state)
{
    struct downpour_call in_time = result_of(0), late = result_of(1);
    struct downpour_round next = round_1;
    struct train_row rows[4];

    (void)state;
    assert_int_equal(deliver(1, &in_time, 1, FLOATS, 1), DOWNPOUR_RECEIPT_COUNTS);
    assert_false(downpour_ledger_complete(&ledger, 0.5, 2, 1)); /* one of three */
    in_time = result_of(2);
    assert_int_equal(deliver(3, &in_time, 1, FLOATS, 1), DOWNPOUR_RECEIPT_COUNTS);
    assert_false(downpour_ledger_complete(&ledger, 0.5, 2, 10)); /* the grace begins */
    assert_false(downpour_ledger_complete(&ledger, 0.5, 2, 11));
    assert_true(downpour_ledger_complete(&ledger, 0.5, 2, 12));
    assert_true(downpour_ledger_wants(&ledger, 1));
    assert_false(downpour_ledger_wants(&ledger, 2));
    downpour_ledger_commit(&ledger, true);
    next.number++;
    next.checksum++;
    downpour_ledger_begin(&ledger, &next, counts);
    assert_int_equal(deliver(2, &in_time, 1, FLOATS, 13), DOWNPOUR_RECEIPT_REFUSED); /* was in */
    assert_int_equal(deliver(2, &late, 7, FLOATS, 13), DOWNPOUR_RECEIPT_COUNTS);
    assert_int_equal(deliver(2, &late, 7, FLOATS, 13), DOWNPOUR_RECEIPT_SURPLUS);
    assert_int_equal(downpour_ledger_rows(&ledger, rows), 1);
    assert_int_equal(rows[0].age, 1);
    assert_true(rows[0].values[0] == 7);
    assert_int_equal(downpour_ledger_samples_of(&ledger, 2), 20);
    downpour_ledger_commit(&ledger, false);
    assert_int_equal(ledger.counts.late, 1);
    assert_int_equal(ledger.counts.late_by_age[0], 1);
    assert_int_equal(ledger.counts.left_out, 4);
}

static void test_calls_and_answers_there_and_back(void **state)
{
    struct downpour_call call = result_of(2), back;
    struct train_answer answer = {TRAIN_ANSWER_CLOSE, 9, TRAIN_ENDING_RENEW, true}, heard;
    uint8_t bytes[DOWNPOUR_CALL_BYTES], said[TRAIN_ANSWER_BYTES];

    (void)state;
    downpour_call_encode(&call, bytes);
    assert_int_equal(downpour_call_decode(bytes, sizeof bytes, &back), BASE_OK);
    assert_true(downpour_round_same(&call.round, &back.round));
    assert_int_equal(back.round.number, 4);
    assert_int_equal(back.kind, DOWNPOUR_CALL_RESULT);
    assert_int_equal(back.block, 2);
    assert_true(back.outcome.loss_sum == 3);
    assert_int_equal(back.outcome.seen, 10);
    assert_int_equal(downpour_call_decode(bytes, sizeof bytes - 1, &back), BASE_ERR_DATA);
    bytes[0] = 99;
    assert_int_equal(downpour_call_decode(bytes, sizeof bytes, &back), BASE_ERR_DATA);
    downpour_call_encode(&call, bytes);
    bytes[16 + 7] = 0x80; /* a negative round */
    assert_int_equal(downpour_call_decode(bytes, sizeof bytes, &back), BASE_ERR_DATA);
    train_answer_encode(&answer, said);
    assert_int_equal(train_answer_decode(said, sizeof said, &heard), BASE_OK);
    assert_memory_equal(&heard, &answer, sizeof heard);
    said[8] = 3;
    assert_int_equal(train_answer_decode(said, sizeof said, &heard), BASE_ERR_DATA);
    assert_int_equal(train_answer_decode(said, 3, &heard), BASE_ERR_DATA);
}

#define LEDGER_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_each_block_counts_once),
        LEDGER_TEST(test_rubbish_is_refused_and_the_block_goes_to_another_worker),
        LEDGER_TEST(test_what_is_not_of_this_round_is_refused),
        LEDGER_TEST(test_late_is_against_the_median_of_the_others),
        LEDGER_TEST(test_a_round_goes_on_in_the_next_view),
        LEDGER_TEST(test_a_block_is_kept_for_a_worker_that_has_not_asked),
        LEDGER_TEST(test_another_round_forgets),
        LEDGER_TEST(test_empty_blocks_are_not_waited_for),
        LEDGER_TEST(test_a_quorum_and_what_comes_late),
        cmocka_unit_test(test_calls_and_answers_there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
