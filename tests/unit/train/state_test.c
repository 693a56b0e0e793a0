/* SPDX-License-Identifier: MIT
 *
 * The state in a checkpoint: the same after a round trip. A position that no training can have, and
 * a file that the manifest does not list, are refused in a sentence that names them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "support/datafiles.h"
#include "support/nets.h"
#include "train/state.h"

static const char text[] = "input 1x4x4\nclasses 3\nflatten\ndense 3 name=head\n";
static const struct train_position good = {.step = 9,
                                           .epoch = 4,
                                           .cursor = 10,
                                           .loss_sum = 1.5,
                                           .correct = 3,
                                           .seen = 10,
                                           .epoch_loss = 0.25,
                                           .epoch_accuracy = 0.5,
                                           .best_validation = 0.125,
                                           .best_step = 8,
                                           .stale_epochs = 2};

static void test_round_trip(void **state)
{
    json_t *json = train_position_to_json(&good);
    struct train_position again = {0};

    (void)state;
    assert_int_equal(train_position_from_json(json, &again), BASE_OK);
    assert_memory_equal(&again, &good, sizeof good);
    json_decref(json);
}

static void refuse(const char *key, int64_t value)
{
    json_t *json = train_position_to_json(&good);
    struct train_position p;

    json_object_set_new(json, key, json_integer(value));
    if (train_position_from_json(json, &p) != BASE_ERR_DATA || strstr(base_message(), key) == NULL)
        fail_msg("%s %lld: %s", key, (long long)value, base_message());
    json_decref(json);
}

static void test_absurd_positions(void **state)
{
    static const char *const counts[] = {"step",    "epoch",     "cursor",      "seen",
                                         "correct", "best_step", "stale_epochs"};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        refuse(counts[i], -1);
        refuse(counts[i], INT64_MAX);
    }
    refuse("epoch", 10);   /* of 9 steps */
    refuse("correct", 11); /* of 10 samples */
    refuse("best_step", 10);
    refuse("stale_epochs", 5);
}

/* Saves a state and opens what `change` has made of its manifest; the message must have `words`. */
static void refuse_manifest(void change(json_t *manifest), const char *words)
{
    struct nn_graph *graph = support_graph(text);
    char *folder = support_scratch();
    const struct nn_optimiser *optimiser = nn_optimiser_registry[0];
    struct store_checkpoint c;
    struct train_state state;
    json_t *about = json_object();

    assert_int_equal(train_state_init(&state, graph, optimiser), BASE_OK);
    state.position = good;
    assert_int_equal(train_state_save(&state, NULL, folder, about, 0), BASE_OK);
    assert_int_equal(store_checkpoint_open(folder, false, &c), BASE_OK);
    assert_int_equal(train_state_load(&state, NULL, &c), BASE_OK);
    change(c.manifest);
    assert_int_equal(train_state_load(&state, NULL, &c), BASE_ERR_DATA);
    if (strstr(base_message(), words) == NULL)
        fail_msg("no \"%s\" in: %s", words, base_message());
    store_checkpoint_close(&c);
    train_state_fini(&state);
    json_decref(about);
    nn_graph_free(graph);
    support_scratch_free(folder);
}

static void unlist_weights(json_t *manifest)
{
    json_object_del(json_object_get(manifest, "files"), "model.safetensors");
}

static void unlist_slots(json_t *manifest)
{
    json_object_del(json_object_get(manifest, "files"), "state.safetensors");
}

static void move_position(json_t *manifest)
{
    json_object_set_new(json_object_get(manifest, "position"), "step", json_integer(10));
}

static void test_manifest(void **state)
{
    (void)state;
    refuse_manifest(unlist_weights, "does not list model.safetensors");
    refuse_manifest(unlist_slots, "does not list state.safetensors");
    refuse_manifest(move_position, "\"position\" is of step 10, the checkpoint of step 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_absurd_positions),
        cmocka_unit_test(test_manifest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
