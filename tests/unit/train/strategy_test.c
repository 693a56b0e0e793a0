/* SPDX-License-Identifier: MIT
 *
 * Names and options of strategies, and the update over ranges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "support/nets.h"
#include "train/shares.h"
#include "train/update.h"

static void test_every_strategy_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *strategy = train_strategy_registry[i], *found = NULL;
        void *options = NULL;

        assert_non_null(strategy->help);
        assert_non_null(strategy->commit_unit);
        assert_non_null(strategy->leg);
        assert_true(strategy->least >= 1);
        assert_true(strategy->sum == NULL || strategy->sum->combine != NULL);
        assert_int_equal(train_strategy_find(strategy->name, &found, &options), BASE_OK);
        assert_ptr_equal(found, strategy);
        base_free(options);
        for (size_t j = 0; strategy->examples != NULL && strategy->examples[j] != NULL; j++) {
            char *text = base_format("%s:%s", strategy->name, strategy->examples[j]);

            assert_int_equal(train_strategy_find(text, &found, &options), BASE_OK);
            base_free(options);
            base_free(text);
        }
    }
}

/* Ranges in ascending order that do not touch; together the workers hold everything. */
static void check_place(const struct train_strategy *strategy, const void *options, int size,
                        const struct nn_graph *graph)
{
    uint64_t floats = nn_graph_weight_floats(graph);
    struct train_shares shares;
    struct train_placing placing = {.options = options,
                                    .size = size,
                                    .shares = &shares,
                                    .floats = {floats, floats, 8},
                                    .graph = graph};
    struct train_holds *held = base_calloc((size_t)size, sizeof *held);
    struct train_version version;

    train_shares_even(&shares, size);
    for (int rank = 0; rank < size; rank++) {
        train_strategy_place(strategy, &placing, rank, &held[rank]);
        assert_true(train_holds_valid(&held[rank], placing.floats));
        for (uint32_t i = 1; i < held[rank].count; i++) {
            const struct train_hold *a = &held[rank].at[i - 1], *b = &held[rank].at[i];

            assert_true(a->group < b->group ||
                        (a->group == b->group && a->from + a->count < b->from));
        }
    }
    assert_true(train_holds_committed(held, size, placing.floats, &version));
    base_free(held);
}

static void test_places_cover_everything(void **state)
{
    (void)state;
    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *strategy = train_strategy_registry[i], *found = NULL;

        for (size_t j = 0; strategy->examples != NULL && strategy->examples[j] != NULL; j++) {
            char *text = base_format("%s:%s", strategy->name, strategy->examples[j]);
            void *options = NULL;

            assert_int_equal(train_strategy_find(text, &found, &options), BASE_OK);
            for (int size = 1; size <= 9; size++)
                for (int width = 1; width < 4; width++) {
                    char *model = base_format("mlp:%dx%d", width * width * 8, width);
                    struct nn_graph *graph = support_zoo(model);

                    check_place(strategy, options, size, graph);
                    nn_graph_free(graph);
                    base_free(model);
                }
            base_free(options);
            base_free(text);
        }
    }
}

/* Of so many copies of each range on neighbours all but one may be lost at once, and not all. */
static void test_replicas(void **state)
{
    static const struct {
        const char *text;
        int copies;
    } cases[] = {{"zero:replicas=2", 2}, {"zero:replicas=1", 1},    {"ring:laps=2", 2},
                 {"ring:replicas=3", 3}, {"ring:replicate=off", 1}, {"ring:laps=3,replicas=4", 4}};
    struct nn_graph *graph = support_zoo("mlp:784x9");
    uint64_t floats = nn_graph_weight_floats(graph);

    (void)state;
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++)
        for (int size = 2; size <= 6; size++) {
            int copies = cases[t].copies < size ? cases[t].copies : size;
            const struct train_strategy *found = NULL;
            struct train_shares shares;
            struct train_placing placing = {
                .size = size, .shares = &shares, .floats = {floats, floats, 8}, .graph = graph};
            struct train_holds *held = base_calloc((size_t)size, sizeof *held);
            struct train_version version;
            void *options = NULL;

            assert_int_equal(train_strategy_find(cases[t].text, &found, &options), BASE_OK);
            placing.options = options;
            train_shares_even(&shares, size);
            for (int first = 0; first < size; first++) {
                for (int rank = 0; rank < size; rank++)
                    train_strategy_place(found, &placing, rank, &held[rank]);
                for (int i = 0; i < copies; i++) {
                    assert_true(train_holds_committed(held, size, placing.floats, &version));
                    held[(first + i) % size].count = 0;
                }
                assert_false(train_holds_committed(held, size, placing.floats, &version));
            }
            base_free(options);
            base_free(held);
        }
    nn_graph_free(graph);
}

/* The same of rotate: rows of unequal work, some workers with none of them, and more weights after
 * the rows, which all workers have. */
static void test_places_of_rotate(void **state)
{
    enum { ROWS = 7, WIDTH = 8, REST = 40 };
    static const char *const texts[] = {"rotate", "rotate:replicas=1"};
    static const uint64_t work[ROWS + 1] = {0, 1, 50, 51, 60, 61, 62, 70};

    (void)state;
    for (int t = 0; t < 2; t++)
        for (int size = 2; size <= 9; size++) {
            const struct train_strategy *rotate = NULL;
            struct train_shares shares;
            struct train_placing placing = {.size = size,
                                            .shares = &shares,
                                            .floats = {ROWS * WIDTH + REST, 0, 0},
                                            .stays = {ROWS, WIDTH, work}};
            struct train_holds *held = base_calloc((size_t)size, sizeof *held);
            struct train_version version;
            void *options = NULL;

            assert_int_equal(train_strategy_find(texts[t], &rotate, &options), BASE_OK);
            placing.options = options;
            train_shares_even(&shares, size);
            for (int lost = -1; lost < size; lost++) {
                uint64_t floats = 0, own = 0;

                for (int rank = 0; rank < size; rank++) {
                    train_strategy_place(rotate, &placing, rank, &held[rank]);
                    assert_true(train_holds_valid(&held[rank], placing.floats));
                    for (uint32_t i = 0; i < held[rank].count; i++)
                        floats += held[rank].at[i].count;
                }
                assert_int_equal(floats, ROWS * WIDTH * (t == 0 ? 2 : 1) + REST * size);
                if (lost >= 0) {
                    own = train_rows_begin(work, ROWS, lost + 1, size) -
                          train_rows_begin(work, ROWS, lost, size);
                    held[lost].count = 0;
                }
                assert_int_equal(train_holds_committed(held, size, placing.floats, &version),
                                 t == 0 || own == 0);
            }
            base_free(options);
            base_free(held);
        }
}

static void test_wrong_texts_are_refused(void **state)
{
    static const char *const wrong[] = {"alreduce",
                                        "",
                                        "allreduce:colour=red",
                                        "allreduce:wire",
                                        "single:wire=fp32",
                                        "zero:stage=0",
                                        "zero:replicas=0"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct train_strategy *strategy = NULL;
        void *options = NULL;

        assert_int_equal(train_strategy_find(wrong[i], &strategy, &options), BASE_ERR_USAGE);
        assert_null(options);
        assert_true(strlen(base_message()) > 0);
    }
}

/* What is wrong with an option is said in the words of a strategy. */
static void test_messages(void **state)
{
    static const char *const wrong[][2] = {
        {"local-sgd:slots=x", "strategy local-sgd: slots takes on or off, not 'x'"},
        {"allreduce:wire=fp8", "strategy allreduce: unknown wire 'fp8'; did you mean 'fp32'? "
                               "(known: fp32, bf16)"},
        {"ddp:overlap=maybe", "strategy ddp: unknown overlap 'maybe'; known: auto, on, off"},
        {"ddp:bucket=2T", "strategy ddp: bucket takes bytes, such as 65536, 64K or 2M, not '2T'"},
    };
    static const char *const right[] = {"local-sgd:slots=off", "local-sgd:slots=on,k=2",
                                        "local-sgd:slots", "ddp:wire=bf16,overlap=off"};
    const struct train_strategy *strategy = NULL;
    void *options = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(train_strategy_find(wrong[i][0], &strategy, &options), BASE_ERR_USAGE);
        assert_string_equal(base_message(), wrong[i][1]);
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(train_strategy_find(right[i], &strategy, &options), BASE_OK);
        base_free(options);
    }
}

/* Ranges in any order, the head in one of them, give what one range gives. */
static void test_update_by_ranges(void **state)
{
    enum { FLOATS = 96, ALL = TRAIN_HEAD + FLOATS };
    const struct nn_optimiser *sgd = NULL;
    float sum[ALL], weights[2][FLOATS], slots[2][FLOATS];
    struct train_range whole = {0, ALL, sum},
                       parts[] = {{64, ALL - 64, sum + 64}, {0, 48, sum}, {48, 16, sum + 48}};

    (void)state;
    assert_int_equal(nn_optimiser_find("sgd", &sgd), BASE_OK);
    for (int i = 0; i < ALL; i++)
        sum[i] = (float)(i % 7) - 3;
    for (int copy = 0; copy < 2; copy++) {
        struct train_update update = {.weights = weights[copy],
                                      .slots = {slots[copy]},
                                      .optimiser = sgd,
                                      .hyper = {.lr = 0.5, .momentum = 0.9, .step = 1},
                                      .clip = 1};

        for (int i = 0; i < FLOATS; i++) {
            weights[copy][i] = 1;
            slots[copy][i] = 0.25f;
        }
        train_update_ranges(&update, copy == 0 ? &whole : parts, copy == 0 ? 1 : 3);
        assert_true(update.gradient_norm > 1);
        assert_true(update.hyper.gradient_scale < 1);
    }
    for (int i = 0; i < FLOATS; i++) {
        assert_float_equal(weights[0][i], weights[1][i], 1e-6);
        assert_float_equal(slots[0][i], slots[1][i], 1e-6);
    }
    assert_true(weights[0][0] != 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_strategy_is_complete),
        cmocka_unit_test(test_places_cover_everything),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_places_of_rotate),
        cmocka_unit_test(test_wrong_texts_are_refused),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_update_by_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
