/* SPDX-License-Identifier: MIT
 *
 * Gradients that travel as rows: when they do, and that their sum is that of whole gradients in the
 * order of ranks, to the bit; messages with rows that are none are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "support/nets.h"
#include "train/touched.h"

enum { USERS = 40, ITEMS = 30, SIZE = 4, WORKERS = 3, SHARE = 5, MOST = 1 << 12 };
static const char MODEL[] = "input 2x1x1\nclasses 1\nembed 40x30 4\ndense 1\nmse";

static void test_when_rows_travel(void **state)
{
    struct nn_graph *graph = support_graph(MODEL);
    struct nn_graph *dense = support_graph("input 1x2x2\nclasses 2\nflatten\ndense 2");
    const size_t entry = 1 + SIZE + 1;
    struct train_touched p;

    (void)state;
    train_touched_plan(graph, WORKERS, SHARE, &p);
    assert_int_equal(p.count, 2);
    assert_int_equal(p.tables[0].rows, USERS);
    assert_int_equal(p.tables[1].rows, ITEMS);
    assert_int_equal(p.tables[1].width, SIZE + 1);
    assert_int_equal(p.message, 2 * SHARE * entry);
    assert_int_equal(p.floats, nn_graph_param(graph, 2)->offset);
    assert_true(train_touched_memory(&p, WORKERS) ==
                (double)((WORKERS + 1) * 2 * SHARE * entry * sizeof(float)));
    train_touched_plan(graph, 2, 29, &p); /* the last share for which rows are fewer bytes */
    assert_int_equal(p.message, 2 * 29 * entry);
    train_touched_plan(graph, 2, ITEMS + 5, &p); /* whole gradients are */
    assert_int_equal(p.floats, 0);
    assert_int_equal(p.count, 0);
    train_touched_plan(graph, 1, SHARE, &p); /* there is no other worker */
    assert_int_equal(p.floats, 0);
    train_touched_plan(dense, WORKERS, SHARE, &p);
    assert_int_equal(p.floats, 0);
    assert_int_equal(p.message, 0);
    nn_graph_free(dense);
    nn_graph_free(graph);
}

/* A worker's gradients: some rows of each table are not zeros, the last one's among them. */
static void touch(const struct train_touched *p, int rank, float *gradients)
{
    memset(gradients, 0, p->floats * sizeof *gradients);
    for (int i = 0; i < p->count; i++)
        for (uint32_t k = 0; k < SHARE; k++) {
            const struct train_table *t = &p->tables[i];
            uint32_t row = (uint32_t)rank % 2 == 0 && k == 0 ? t->rows - 1 : 7 * k + (uint32_t)rank;

            support_fill(gradients + t->offset + row % t->rows * t->width, t->width,
                         (uint32_t)(100 * rank + 10 * i) + k);
        }
}

static void test_the_sum_of_whole_gradients(void **state)
{
    struct nn_graph *graph = support_graph(MODEL);
    float whole[MOST] = {0}, gradients[WORKERS][MOST], messages[WORKERS][MOST];
    struct train_touched p;

    (void)state;
    train_touched_plan(graph, WORKERS, SHARE, &p);
    assert_in_range(p.floats, 1, MOST);
    for (int rank = 0; rank < WORKERS; rank++) {
        touch(&p, rank, gradients[rank]);
        for (size_t i = 0; i < p.floats; i++)
            whole[i] += gradients[rank][i];
        assert_int_equal(train_touched_pack(&p, gradients[rank], messages[rank]), BASE_OK);
        for (size_t i = 0; i < p.floats; i++)
            assert_true(gradients[rank][i] == 0);
    }
    for (int rank = 0; rank < WORKERS; rank++)
        assert_int_equal(train_touched_add(&p, rank, messages[rank], gradients[1]), BASE_OK);
    assert_memory_equal(gradients[1], whole, p.floats * sizeof(float));
    nn_graph_free(graph);
}

static void test_shares_without_samples_and_with_nan(void **state)
{
    struct nn_graph *graph = support_graph(MODEL);
    float gradients[MOST] = {0}, message[MOST], none[MOST] = {0};
    struct train_touched p;

    (void)state;
    train_touched_plan(graph, WORKERS, SHARE, &p);
    assert_int_equal(train_touched_pack(&p, gradients, message), BASE_OK);
    assert_int_equal(train_touched_add(&p, 0, message, gradients), BASE_OK);
    assert_memory_equal(gradients, none, p.floats * sizeof(float));
    gradients[3] = NAN;
    assert_int_equal(train_touched_pack(&p, gradients, message), BASE_OK);
    assert_int_equal(train_touched_add(&p, 0, message, gradients), BASE_OK);
    assert_true(isnan(gradients[3]));
    nn_graph_free(graph);
}

/* Shares may change while a view lasts. */
static void test_room_for_other_shares(void **state)
{
    struct nn_graph *graph = support_graph(MODEL);
    float gradients[MOST] = {0}, message[MOST], sum[MOST] = {0};
    struct train_touched p;

    (void)state;
    train_touched_plan(graph, WORKERS, SHARE, &p);
    train_touched_room(&p, ITEMS + 5);
    assert_int_equal(p.message, (ITEMS + 5 + ITEMS) * (1 + SIZE + 1));
    for (uint32_t row = 0; row < ITEMS + 5; row++)
        gradients[p.tables[0].offset + row * p.tables[0].width] = 1 + (float)row;
    assert_int_equal(train_touched_pack(&p, gradients, message), BASE_OK);
    assert_int_equal(train_touched_add(&p, 0, message, sum), BASE_OK);
    for (uint32_t row = 0; row < USERS; row++)
        assert_true(sum[p.tables[0].offset + row * p.tables[0].width] ==
                    (row < ITEMS + 5 ? 1 + (float)row : 0));
    nn_graph_free(graph);
}

static void test_what_is_refused(void **state)
{
    struct nn_graph *graph = support_graph(MODEL);
    float gradients[MOST] = {0}, message[MOST];
    const uint32_t beyond = USERS;
    struct train_touched p;

    (void)state;
    train_touched_plan(graph, WORKERS, SHARE, &p);
    for (uint32_t row = 0; row <= SHARE; row++) /* one more than there is room for */
        gradients[p.tables[0].offset + row * p.tables[0].width] = 1;
    assert_int_equal(train_touched_pack(&p, gradients, message), BASE_ERR_INTERNAL);
    memset(gradients, 0, sizeof gradients);
    touch(&p, 1, gradients);
    assert_int_equal(train_touched_pack(&p, gradients, message), BASE_OK);
    memcpy(message, &beyond, sizeof beyond);
    assert_int_equal(train_touched_add(&p, 2, message, gradients), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "rank 2 sent a gradient of row 40, but there are 40"));
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_rows_travel),
        cmocka_unit_test(test_the_sum_of_whole_gradients),
        cmocka_unit_test(test_shares_without_samples_and_with_nan),
        cmocka_unit_test(test_room_for_other_shares),
        cmocka_unit_test(test_what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
