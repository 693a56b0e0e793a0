/* SPDX-License-Identifier: MIT
 *
 * What workers of a ring claim to hold after a step that was lost. One that has neither a stage nor
 * a replica has old statistics in its memory, and must not claim them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "train/strategies/ring/holds.h"

enum { WORKERS = 4 }; /* and two stages: worker 2 has a replica, worker 3 nothing */

static const char MODEL[] =
    "input 1x4x4\nclasses 2\nconv 8 3x3 pad=1\nbn\nflatten\ndense classes\n";

/* Floats of a group that the worker holds, by its own word. */
static uint64_t held(const struct train_session *s, enum train_group group)
{
    struct train_holds holds;
    uint64_t sum = 0;

    train_state_holds(&s->state, &holds);
    for (uint32_t i = 0; i < holds.count; i++) {
        assert_int_equal(holds.at[i].version.step, 7);
        sum += holds.at[i].group == group ? holds.at[i].count : 0;
    }
    return sum;
}

static void test_claims(void **state)
{
    struct ring_options options = {.microbatches = 1, .laps = 1, .replicate = "on", .replicas = 2};
    struct ring_stages *stages = base_calloc(1, sizeof *stages);
    struct train_session *s = base_calloc(1, sizeof *s);
    const struct nn_optimiser *sgd = NULL;
    struct nn_graph *graph = NULL;

    (void)state;
    assert_int_equal(
        nn_graph_new(MODEL, "model", (struct nn_shape){.c = 1, .h = 4, .w = 4}, 2, &graph),
        BASE_OK);
    assert_int_equal(nn_optimiser_find("sgd", &sgd), BASE_OK);
    options.chosen =
        (struct ring_cut){.workers = WORKERS, .stages = 2, .first = {0, 2, nn_graph_layers(graph)}};
    stages->cut = options.chosen;
    for (int rank = 0; rank < WORKERS; rank++) {
        struct train_placing placing = {.options = &options, .graph = graph, .size = WORKERS};
        struct train_holds wanted = {0};

        *s = (struct train_session){.options = &options, .united_step = 4};
        stages->mail.rank = rank;
        assert_int_equal(train_state_describe(&s->state, graph, sgd), BASE_OK);
        train_state_sizes(&s->state, placing.floats);
        ring_place(&placing, rank, &wanted);
        for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++)
            assert_int_equal(train_state_make_room(&s->state, g, &wanted), BASE_OK);
        ring_claim(stages, s, (struct train_version){7, 0});
        assert_int_equal(held(s, TRAIN_WEIGHTS) > 0, rank < 3);
        assert_int_equal(held(s, TRAIN_STATISTICS) > 0, rank < 2); /* of the first stage's bn */
        train_state_fini(&s->state);
    }
    nn_graph_free(graph);
    base_free(stages);
    base_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
