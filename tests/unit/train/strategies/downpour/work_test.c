/* SPDX-License-Identifier: MIT
 *
 * Results on their way to the manager in a lossy wire, whatever becomes of the answers: what the
 * manager has, and what the worker keeps in its residual, are together what was sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/strategies/downpour/downpour.h"

enum { FLOATS = 200 };
#define WIRE "topk/share=0.1/bits=3"

struct room {
    struct train_team team;
    struct downpour downpour;
    float residual[FLOATS], values[FLOATS];
    float came[FLOATS]; /* the newest result, as the manager unpacked it */
    double sent[FLOATS], got[FLOATS];
};

static void open_view(struct room *r)
{
    assert_int_equal(
        downpour_parcel_open(&r->downpour.parcel, WIRE, &r->team, r->residual, FLOATS, 0), BASE_OK);
}

/* The n-th block is computed. */
static void compute(struct room *r, uint32_t n)
{
    struct base_rng rng = base_rng_of(5, BASE_STREAM_TEST, n, 0, 0);

    for (uint32_t i = 0; i < FLOATS; i++)
        r->values[i] = base_rng_unit(base_rng_u32(&rng, i)) - 0.3f;
    r->downpour.solo.own = (struct train_own){.valid = true, .complete = true, .values = r->values};
}

/* The result goes to the manager, and comes. */
static void send_result(struct room *r)
{
    size_t length;
    const void *bytes = downpour_dispatch(&r->downpour, FLOATS, &length);

    assert_int_equal(
        downpour_parcel_unpack(&r->downpour.parcel.wiring, bytes, length, r->came, FLOATS, 0),
        BASE_OK);
}

/* The manager puts what has come newest into its update. */
static void take(struct room *r)
{
    for (int i = 0; i < FLOATS; i++) {
        r->sent[i] += (double)r->values[i];
        r->got[i] += (double)r->came[i];
    }
}

static void commit(struct room *r)
{
    downpour_parcel_commit(&r->downpour.parcel, r->residual);
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabs(r->got[i] + (double)r->residual[i] - r->sent[i]) < 1e-4);
}

static void lose_view(struct room *r)
{
    downpour_parcel_close(&r->downpour.parcel);
    open_view(r);
}

/* A round is committed before the test, so that there is something in the residual. */
static void set_up(struct room *r)
{
    *r = (struct room){.team.exchange = {.rank = 1, .size = 3}};
    open_view(r);
    compute(r, 1);
    send_result(r);
    take(r);
    downpour_settle(&r->downpour, true, true);
    commit(r);
    compute(r, 2);
}

/* Two rounds more: two results count in the first of them, and none in the second. */
static void tear_down(struct room *r)
{
    compute(r, 3);
    send_result(r);
    take(r);
    downpour_settle(&r->downpour, true, true);
    compute(r, 4);
    send_result(r);
    take(r);
    downpour_settle(&r->downpour, true, true);
    commit(r);
    compute(r, 5);
    send_result(r);
    downpour_settle(&r->downpour, false, true); /* another worker's is in already */
    commit(r);
    downpour_parcel_fini(&r->downpour.parcel);
}

/* The manager has the result, but the view ends before its answer: sent again it is surplus, and
 * the answer says that the worker's counts. */
static void test_answer_is_lost(void **state)
{
    struct room r;

    (void)state;
    set_up(&r);
    send_result(&r);
    take(&r);
    lose_view(&r);
    send_result(&r);
    downpour_settle(&r.downpour, true, true);
    commit(&r);
    tear_down(&r);
}

/* … or after it: what counts already is not settled a second time. */
static void test_sent_again_after_answer(void **state)
{
    struct room r;

    (void)state;
    set_up(&r);
    send_result(&r);
    take(&r);
    downpour_settle(&r.downpour, true, true);
    lose_view(&r);
    send_result(&r);
    downpour_settle(&r.downpour, true, true);
    lose_view(&r);
    send_result(&r);
    downpour_settle(&r.downpour, true, true);
    commit(&r);
    tear_down(&r);
}

/* The round's end crosses a result: the manager's last word tells whether it came in time. */
static void test_close_crosses_result(void **state)
{
    (void)state;
    for (int in_time = 0; in_time < 2; in_time++) {
        struct room r;

        set_up(&r);
        send_result(&r);
        if (in_time)
            take(&r);
        downpour_settle(&r.downpour, in_time, true);
        commit(&r);
        tear_down(&r);
    }
}

/* The round's last word comes also to a worker whose result was answered before. */
static void test_settled_once(void **state)
{
    struct room r;

    (void)state;
    set_up(&r);
    send_result(&r);
    take(&r);
    downpour_settle(&r.downpour, true, true);
    downpour_settle(&r.downpour, true, true);
    commit(&r);
    tear_down(&r);
}

/* The manager is lost with all results, answered or not: another one gets them anew. */
static void test_manager_is_gone(void **state)
{
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        struct room r;

        set_up(&r);
        send_result(&r);
        if (answered)
            downpour_settle(&r.downpour, true, true);
        lose_view(&r);
        downpour_forget_settled(&r.downpour);
        send_result(&r);
        take(&r);
        downpour_settle(&r.downpour, true, true);
        commit(&r);
        tear_down(&r);
    }
}

/* A change that is pushed counts, and the next one begins where it ended. */
static void test_pushes(void **state)
{
    struct room r;

    (void)state;
    set_up(&r);
    for (uint32_t n = 0; n < 3; n++) {
        compute(&r, 10 + n);
        send_result(&r);
        take(&r);
        downpour_settle(&r.downpour, true, n == 2);
    }
    commit(&r);
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_is_lost),       cmocka_unit_test(test_sent_again_after_answer),
        cmocka_unit_test(test_close_crosses_result), cmocka_unit_test(test_settled_once),
        cmocka_unit_test(test_manager_is_gone),      cmocka_unit_test(test_pushes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
