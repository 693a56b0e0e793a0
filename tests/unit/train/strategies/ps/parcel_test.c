/* SPDX-License-Identifier: MIT
 *
 * Packed pushes without a network: what is left out goes with the next push that counts, whatever
 * became of those between, and in the unit of that push.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "train/strategies/ps/parcel.h"

enum { FLOATS = 96, SERVERS = 2 };

struct room {
    struct train_session session; /* of which the number of weights and of workers matter */
    struct ps_parcel parcel;
    float gradients[FLOATS], got[FLOATS];
};

static void open_room(struct room *r, const char *wire, int workers)
{
    *r = (struct room){
        .session = {.state = {.floats = FLOATS}, .team = {.exchange = {.size = workers}}}};
    assert_int_equal(
        ps_parcel_open(&r->parcel, wire, &r->session, (struct ps_seats){.servers = SERVERS}),
        BASE_OK);
    for (int i = 0; i < FLOATS; i++)
        r->gradients[i] = sinf((float)i) * expf(0.1f * (float)i);
}

/* What servers get of a push. */
static void push(struct room *r, double unit)
{
    struct train_slice slices[2];

    for (int i = SERVERS - 1; i >= 0; i--) {
        ps_parcel_pack(&r->parcel, i, r->gradients, unit);
        ps_server_slices(FLOATS, i, SERVERS, slices);
        assert_int_equal(train_wire_decode(&r->parcel.wiring, r->parcel.bytes + r->parcel.from[i],
                                           r->parcel.length[i], r->got + slices[0].from,
                                           slices[0].count),
                         BASE_OK);
    }
}

static void test_a_push_that_does_not_count(void **state)
{
    float first[FLOATS], second[FLOATS];
    struct room r;

    (void)state;
    open_room(&r, "topk/share=0.1", 3);
    push(&r, 1);
    memcpy(first, r.got, sizeof first);
    ps_parcel_settle(&r.parcel, false);
    push(&r, 1); /* the same values again have the same bytes: nothing was sent before */
    assert_memory_equal(first, r.got, sizeof first);
    ps_parcel_settle(&r.parcel, true);
    push(&r, 1); /* now what was left out comes, too */
    assert_memory_not_equal(first, r.got, sizeof first);
    memcpy(second, r.got, sizeof second);
    ps_parcel_settle(&r.parcel, true);
    for (int i = 0; i < FLOATS; i++) { /* what came and what is left are all that was pushed */
        float pushed = 2 * r.gradients[i];

        assert_true(fabsf(first[i] + second[i] + r.parcel.residual[i] - pushed) <=
                    1e-5f * fabsf(pushed));
    }
    ps_parcel_fini(&r.parcel);
}

/* A share's gradients count whole, those of a block of a quarter of the samples by a quarter: what
 * a share has left out is four times as much of a block, and stays what it is if the block does not
 * count. */
static void test_units(void **state)
{
    float left[FLOATS];
    struct room r;

    (void)state;
    open_room(&r, "topk/share=0.1", 3);
    push(&r, 1);
    ps_parcel_settle(&r.parcel, true);
    memcpy(left, r.parcel.residual, sizeof left);
    memset(r.gradients, 0, sizeof r.gradients);
    push(&r, 0.25);
    ps_parcel_settle(&r.parcel, false);
    assert_memory_equal(left, r.parcel.residual, sizeof left);
    push(&r, 0.25);
    ps_parcel_settle(&r.parcel, true);
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabsf(0.25f * (r.got[i] + r.parcel.residual[i]) - left[i]) <=
                    1e-6f * fabsf(left[i]));
    ps_parcel_fini(&r.parcel);
}

/* The bits of the gradients, no residual; and nothing is packed where no bytes travel. */
static void test_exact_and_alone(void **state)
{
    static const char *const exact[] = {"fp32", "sparse"};
    struct room r;

    (void)state;
    for (int i = 0; i < 2; i++) {
        open_room(&r, exact[i], 3);
        assert_true(ps_parcel_packs(&r.parcel));
        assert_null(r.parcel.residual);
        push(&r, 1);
        assert_memory_equal(r.gradients, r.got, sizeof r.got);
        ps_parcel_settle(&r.parcel, true);
        ps_parcel_fini(&r.parcel);
    }
    open_room(&r, NULL, 3);
    assert_false(ps_parcel_packs(&r.parcel));
    ps_parcel_fini(&r.parcel);
    open_room(&r, "int8", 1);
    assert_false(ps_parcel_packs(&r.parcel));
    assert_non_null(r.parcel.residual); /* it may have come from a view of several workers */
    ps_parcel_fini(&r.parcel);
}

/* A view ends, another begins: what was left out is still there. */
static void test_views(void **state)
{
    float left[FLOATS];
    struct room r;

    (void)state;
    open_room(&r, "int4", 3);
    push(&r, 1);
    ps_parcel_settle(&r.parcel, true);
    memcpy(left, r.parcel.residual, sizeof left);
    r.session.team.exchange.size = 2;
    assert_int_equal(ps_parcel_open(&r.parcel, "int4", &r.session, (struct ps_seats){.servers = 1}),
                     BASE_OK);
    assert_memory_equal(left, r.parcel.residual, sizeof left);
    ps_parcel_fini(&r.parcel);
}

static void test_ratios(void **state)
{
    (void)state;
    assert_true(ps_parcel_ratio(NULL, 1e6) == 1);
    assert_true(ps_parcel_ratio("fp32", 1e6) == 1);
    assert_true(ps_parcel_ratio("bf16", 1e6) == 0.5);
    assert_true(fabs(ps_parcel_ratio("int8", 1e6) - 0.252) < 0.001);
    assert_true(ps_parcel_ratio("topk", 1e6) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_push_that_does_not_count),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_exact_and_alone),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_ratios),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
