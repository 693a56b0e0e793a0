/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of a worker's memory: what every strategy adds to what, on one host and on
 * several.
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
#include "train/memory.h"

static const double W = 4e6, G = 4e6 + TRAIN_HEAD * sizeof(float), STATISTICS = 1000;
static const struct train_seat alone = {.workers = 1, .locals = 1};
static const struct train_seat one_host = {.workers = 3, .rank = 1, .locals = 3, .shares = true};
static const struct train_seat apart = {.workers = 3, .rank = 1, .locals = 1};

static struct train_sizes sizes = {.weights = 4e6,
                                   .slots = 2,
                                   .statistics = 1000,
                                   .activations = 7e6,
                                   .batches = 3e5,
                                   .tensor = 1e6,
                                   .lent = {8e5, 9e5},
                                   .samples = 8};

/* `change`: what else is asked, without sizes and seat. */
static struct train_memory count(const char *text, struct train_seat seat,
                                 struct train_memory_question change)
{
    const struct train_strategy *strategy = NULL;
    struct train_memory memory;
    void *options = NULL;

    assert_int_equal(train_strategy_find(text, &strategy, &options), BASE_OK);
    change.sizes = &sizes;
    change.seat = seat;
    change.options = options;
    train_memory_count(strategy, &change, &memory);
    base_free(options);
    return memory;
}

static void is(const struct train_memory *memory, enum train_memory_kind kind, double own,
               double shared)
{
    assert_true(memory->of[kind].own == own);
    assert_true(memory->of[kind].shared == shared);
}

static void test_a_worker_alone(void **state)
{
    struct train_memory m = count(
        "single", alone, (struct train_memory_question){.data = 50, .files = 9, .saves = true});

    (void)state;
    is(&m, TRAIN_MEMORY_WEIGHTS, W + STATISTICS, 0);
    is(&m, TRAIN_MEMORY_GRADIENTS, G, 0);
    is(&m, TRAIN_MEMORY_SLOTS, 2 * W, 0);
    is(&m, TRAIN_MEMORY_SPARE, STATISTICS, 0);
    is(&m, TRAIN_MEMORY_ACTIVATIONS, 7e6, 0);
    is(&m, TRAIN_MEMORY_COMMUNICATION, 0, 0);
    is(&m, TRAIN_MEMORY_DATA, 50 + 3e5 + 1e6, 0);
    assert_true(m.files == 9);
    assert_true(train_memory_part(&m, 1) == train_memory_sum(&m).own);
}

/* Pieces are added up in a buffer; rank 0 alone has a tensor between memory and file. */
static void test_pieces_and_saving(void **state)
{
    struct train_memory_question both = {.accumulates = true, .saves = true};
    struct train_memory m = count("allreduce", apart, both);

    (void)state;
    is(&m, TRAIN_MEMORY_GRADIENTS, G + W, 0);
    is(&m, TRAIN_MEMORY_DATA, 3e5, 0);
}

static void test_the_exchange(void **state)
{
    struct train_memory_question plain = {0};
    struct train_memory m = count("allreduce", one_host, plain);
    struct train_seat private = one_host;
    uint64_t own, shared;

    (void)state;
    coll_memory(3, 3, &own, &shared);
    assert_true(own > 0 && shared > 0);
    is(&m, TRAIN_MEMORY_GRADIENTS, 0, 3 * G);
    is(&m, TRAIN_MEMORY_COMMUNICATION, (double)own, (double)shared + G);
    assert_true(fabs(train_memory_part(&m, 3) - train_memory_sum(&m).own -
                     train_memory_sum(&m).shared / 3) < 1);
    m = count("allreduce", apart, plain);
    is(&m, TRAIN_MEMORY_GRADIENTS, G, 0);
    is(&m, TRAIN_MEMORY_COMMUNICATION, (double)own, 0);
    private.shares = false; /* a transport that shares nothing */
    m = count("allreduce", private, plain);
    is(&m, TRAIN_MEMORY_GRADIENTS, G, 0);
}

/* Copies that all workers of a host update together: only where nothing stands against it. */
static void test_copies_of_ddp(void **state)
{
    struct train_memory_question plain = {0}, clips = {.clips = true};
    struct train_memory m = count("ddp", one_host, plain);

    (void)state;
    assert_true(m.of[TRAIN_MEMORY_SPARE].own == STATISTICS);
    assert_in_range((uint64_t)m.of[TRAIN_MEMORY_SPARE].shared, 6 * 4000000, 6 * 4001000);
    m = count("ddp", one_host, clips);
    is(&m, TRAIN_MEMORY_SPARE, STATISTICS, 0);
    m = count("ddp:overlap=on", one_host, plain);
    is(&m, TRAIN_MEMORY_SPARE, STATISTICS, 0);
    m = count("ddp:wire=bf16", one_host, plain);
    is(&m, TRAIN_MEMORY_SPARE, STATISTICS, 0);
    m = count("ddp", apart, plain);
    is(&m, TRAIN_MEMORY_SPARE, STATISTICS, 0);
    m = count("ddp", alone, plain);
    is(&m, TRAIN_MEMORY_SPARE, STATISTICS, 0);
}

static void test_what_strategies_keep(void **state)
{
    struct train_memory_question plain = {0};
    struct train_seat first = apart;
    struct train_memory others = count("gather-scatter", apart, plain), m;

    (void)state;
    first.rank = 0;
    m = count("gather-scatter", first, plain);
    assert_true(train_memory_sum(&m).own - train_memory_sum(&others).own == 2 * W);
    m = count("local-sgd", apart, plain);
    is(&m, TRAIN_MEMORY_SPARE, 3 * W + 2 * STATISTICS, 0);
    m = count("local-sgd:outer-lr=0.7", apart, plain);
    is(&m, TRAIN_MEMORY_SPARE, 4 * W + 2 * STATISTICS, 0);
    is(&m, TRAIN_MEMORY_SLOTS, 3 * W, 0);
    m = count("local-sgd:outer-lr=0.7,wire=int8", apart, plain);
    is(&m, TRAIN_MEMORY_SPARE, 5 * W + 2 * STATISTICS, 0);
    is(&m, TRAIN_MEMORY_SLOTS, 4 * W, 0);
    others = count("local-sgd", apart, plain); /* slices of a third, and messages by int8 */
    assert_in_range(m.of[TRAIN_MEMORY_COMMUNICATION].own -
                        others.of[TRAIN_MEMORY_COMMUNICATION].own,
                    1.1 * W, 1.3 * W);
}

/* A million floats between four workers: 250,000 each of what is divided. */
static void test_parts_of_zero(void **state)
{
    struct train_memory_question saves = {.saves = true};
    struct train_seat seat = {.workers = 4, .rank = 0, .locals = 1};
    struct train_memory m = count("zero:stage=1", seat, saves);

    (void)state;
    is(&m, TRAIN_MEMORY_WEIGHTS, W + STATISTICS, 0);
    is(&m, TRAIN_MEMORY_SLOTS, 2 * W / 4, 0);
    is(&m, TRAIN_MEMORY_GRADIENTS, G, 0);
    is(&m, TRAIN_MEMORY_DATA, 3e5 + 2e6, 0);
    m = count("zero:stage=2", seat, saves);
    is(&m, TRAIN_MEMORY_WEIGHTS, W + STATISTICS, 0);
    is(&m, TRAIN_MEMORY_GRADIENTS, G - W + sizes.lent[0] + W / 4, 0);
    m = count("zero:stage=3", seat, saves);
    is(&m, TRAIN_MEMORY_WEIGHTS, W / 4 + STATISTICS, 0);
    is(&m, TRAIN_MEMORY_GRADIENTS, G - W + sizes.lent[1] + W / 4, 0);
    m = count("zero:stage=3,replicas=2", seat, saves);
    is(&m, TRAIN_MEMORY_WEIGHTS, W / 2 + STATISTICS, 0);
    is(&m, TRAIN_MEMORY_SLOTS, 2 * W / 2, 0);
    m = count("zero:stage=3", alone, saves); /* nothing to divide, nothing to lend */
    is(&m, TRAIN_MEMORY_WEIGHTS, W + STATISTICS, 0);
    is(&m, TRAIN_MEMORY_GRADIENTS, G, 0);
}

/* Whatever strategy: something for each worker, and its share of the batch is among it. */
static void test_every_strategy(void **state)
{
    (void)state;
    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *strategy = train_strategy_registry[i];
        const struct train_seat *seats[] = {&alone, &one_host, &apart};

        if (strategy->stages != NULL) /* test_stages */
            continue;
        for (size_t j = 0; j < (strategy->alone ? 1 : 3); j++) {
            struct train_memory m =
                count(strategy->name, *seats[j], (struct train_memory_question){0});
            double part = train_memory_part(&m, seats[j]->locals);

            assert_true(isfinite(part) && part >= sizes.activations + W / seats[j]->workers);
            assert_true(m.of[TRAIN_MEMORY_ACTIVATIONS].own == sizes.activations);
            for (int kind = 0; kind < TRAIN_MEMORY_KINDS; kind++)
                assert_true(m.of[kind].own >= 0 && m.of[kind].shared >= 0);
        }
    }
}

/* Layers on three workers: their weights are there once, and gradients and activations of a
 * worker's own layers alone. */
static void test_stages(void **state)
{
    struct train_sizes before = sizes;
    struct nn_graph *graph = support_zoo("mlp:784x7");
    double bytes = (double)nn_graph_weight_floats(graph) * sizeof(float), weights = 0;

    (void)state;
    sizes.graph = graph;
    sizes.weights = bytes;
    for (int rank = 0; rank < 3; rank++) {
        struct train_seat seat = apart;
        struct train_memory m;
        double own;

        seat.rank = rank;
        m = count("ring:microbatches=4,replicate=off", seat, (struct train_memory_question){0});
        own = m.of[TRAIN_MEMORY_WEIGHTS].own - STATISTICS;
        weights += own;
        assert_true(own > 0 && own < bytes);
        assert_true(m.of[TRAIN_MEMORY_SLOTS].own == 2 * own);
        assert_true(m.of[TRAIN_MEMORY_GRADIENTS].own ==
                    2 * own + TRAIN_HEAD * sizeof(float)); /* a micro-batch's, and their sum */
        assert_true(m.of[TRAIN_MEMORY_ACTIVATIONS].own > 0);
        m = count("ring:microbatches=4,replicas=3", seat, (struct train_memory_question){0});
        is(&m, TRAIN_MEMORY_WEIGHTS, bytes + STATISTICS, 0);
        is(&m, TRAIN_MEMORY_SLOTS, 2 * bytes, 0);
        is(&m, TRAIN_MEMORY_GRADIENTS, own + bytes + TRAIN_HEAD * sizeof(float), 0);
    }
    assert_true(weights == bytes);
    sizes = before;
    nn_graph_free(graph);
}

static void test_more_than_can_be_counted(void **state)
{
    struct train_memory m;
    double before = sizes.activations;

    (void)state;
    sizes.activations = INFINITY;
    m = count("single", alone, (struct train_memory_question){0});
    sizes.activations = before;
    assert_true(isinf(train_memory_part(&m, 1)));
}

static void test_what_is_told(void **state)
{
    struct train_memory m = count("allreduce", one_host, (struct train_memory_question){0});
    struct base_str text = {0};
    json_t *object = train_memory_json(&m, 3);
    struct train_bytes sum = train_memory_sum(&m);

    (void)state;
    train_memory_text(&m, 3, 2, &text);
    assert_string_equal(text.text, "optimiser 8.00 MB, activations 7.00 MB");
    base_str_fini(&text);
    train_memory_text(&m, 3, 2 * TRAIN_MEMORY_KINDS, &text); /* each is told once */
    assert_ptr_equal(strstr(strstr(text.text, "weights") + 1, "weights"), NULL);
    assert_int_equal(json_integer_value(json_object_get(object, "worker_bytes")),
                     llround(train_memory_part(&m, 3)));
    assert_int_equal(json_integer_value(json_object_get(object, "resident_bytes")),
                     llround(sum.own + sum.shared));
    assert_int_equal(json_integer_value(json_object_get(object, "gradients")), (int64_t)G);
    json_decref(object);
    base_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_alone),
        cmocka_unit_test(test_pieces_and_saving),
        cmocka_unit_test(test_the_exchange),
        cmocka_unit_test(test_copies_of_ddp),
        cmocka_unit_test(test_what_strategies_keep),
        cmocka_unit_test(test_every_strategy),
        cmocka_unit_test(test_parts_of_zero),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_more_than_can_be_counted),
        cmocka_unit_test(test_what_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
