/* SPDX-License-Identifier: MIT
 *
 * The state in memory, whole and in parts; and in a checkpoint: the same after a round trip. A
 * position that no training can have, and a file that the manifest does not list, are refused in a
 * sentence that names them.
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

/* ---- parts ---- */

static const char wide[] = "input 1x8x8\nclasses 5\nflatten\ndense 40\nrelu\ndense 5 name=head\n";

static struct train_holds ranges(const uint64_t (*of)[3], uint32_t count)
{
    struct train_holds holds = {.count = count};

    for (uint32_t i = 0; i < count; i++)
        holds.at[i] =
            (struct train_hold){.group = (uint32_t)of[i][0], .from = of[i][1], .count = of[i][2]};
    return holds;
}

/* What any worker makes of the seed is what one that has everything makes. */
static void test_parts(void **state)
{
    static const uint64_t of[][3] = {
        {TRAIN_WEIGHTS, 0, 48}, {TRAIN_WEIGHTS, 1000, 777}, {TRAIN_SLOTS, 16, 32}};
    struct train_holds wanted = ranges(of, 3), held;
    const struct nn_optimiser *adam = NULL;
    struct nn_graph *graph = support_graph(wide);
    struct train_state whole, parts, copy;
    float out[100];

    (void)state;
    assert_int_equal(nn_optimiser_find("adam", &adam), BASE_OK);
    assert_int_equal(train_state_init(&whole, graph, adam), BASE_OK);
    assert_int_equal(train_state_describe(&parts, graph, adam), BASE_OK);
    assert_false(train_state_fits(&parts, TRAIN_WEIGHTS, &wanted));
    assert_int_equal(train_state_make_room(&parts, TRAIN_WEIGHTS, &wanted), BASE_OK);
    assert_int_equal(train_state_make_room(&parts, TRAIN_SLOTS, &wanted), BASE_OK);
    assert_true(train_state_fits(&parts, TRAIN_WEIGHTS, &wanted));
    assert_true(train_state_fits(&parts, TRAIN_SLOTS, &wanted));
    assert_false(train_state_fits(&whole, TRAIN_SLOTS, &wanted));
    assert_true(train_state_is_whole(&whole) && !train_state_is_whole(&parts));

    assert_int_equal(train_state_start(&whole, 7), BASE_OK);
    assert_int_equal(train_state_start(&parts, 7), BASE_OK);
    assert_null(parts.weights);
    assert_memory_equal(train_state_at(&parts, TRAIN_WEIGHTS, 0, 0, 48), whole.weights,
                        48 * sizeof(float));
    assert_memory_equal(train_state_at(&parts, TRAIN_WEIGHTS, 0, 1000, 777), whole.weights + 1000,
                        777 * sizeof(float));
    assert_null(train_state_at(&parts, TRAIN_WEIGHTS, 0, 40, 9)); /* past the part's end */
    assert_null(train_state_at(&parts, TRAIN_SLOTS, 1, 15, 2));
    assert_ptr_equal(train_state_at(&whole, TRAIN_SLOTS, 1, 15, 2), whole.slots[1] + 15);

    /* Copies touch what is held and nothing else. */
    for (int i = 0; i < 100; i++)
        out[i] = (float)i;
    train_state_put(&parts, TRAIN_SLOTS, 1, 0, 100, out);
    assert_true(train_state_at(&parts, TRAIN_SLOTS, 1, 16, 32)[0] == 16);
    assert_true(train_state_at(&parts, TRAIN_SLOTS, 0, 16, 32)[0] == 0);
    for (int i = 0; i < 100; i++)
        out[i] = -1;
    train_state_get(&parts, TRAIN_SLOTS, 1, 10, 100, out);
    assert_true(out[5] == -1 && out[6] == 16 && out[37] == 47 && out[38] == -1);

    /* Its memory at the position, or what it claims. */
    parts.position.step = 3;
    train_state_holds(&parts, &held);
    assert_int_equal(held.count, 4);
    assert_int_equal(held.at[1].from, 1000);
    assert_int_equal(held.at[2].version.step, 3);
    assert_int_equal(held.at[3].group, TRAIN_STATISTICS);
    parts.claims = ranges(of, 1);
    train_state_holds(&parts, &held);
    assert_int_equal(held.count, 1);

    /* New memory beside the old. */
    copy = parts;
    assert_int_equal(train_state_make_room(&parts, TRAIN_WEIGHTS, NULL), BASE_OK);
    assert_non_null(parts.weights);
    assert_int_equal(parts.parts[TRAIN_WEIGHTS].count, 0);
    assert_true(train_state_at(&copy, TRAIN_WEIGHTS, 0, 1000, 1)[0] == whole.weights[1000]);
    train_state_drop(&copy, TRAIN_WEIGHTS);
    train_state_fini(&parts);
    train_state_fini(&whole);
    nn_graph_free(graph);
}

/* A checkpoint written by way of a carrier, whose tensors come from elsewhere and go elsewhere. */
struct elsewhere {
    struct train_state *state;
    int calls;
};

static base_status bring(void *context, int slot, size_t at, size_t count, const float **memory_p)
{
    struct elsewhere *e = context;

    e->calls++;
    *memory_p = train_state_at(e->state, slot < 0 ? TRAIN_WEIGHTS : TRAIN_SLOTS,
                               slot < 0 ? 0 : slot, at, count);
    return BASE_OK;
}

static base_status take(void *context, int slot, size_t at, size_t count, const float *memory)
{
    struct elsewhere *e = context;

    e->calls++;
    train_state_put(e->state, slot < 0 ? TRAIN_WEIGHTS : TRAIN_SLOTS, slot < 0 ? 0 : slot, at,
                    count, memory);
    return BASE_OK;
}

static base_status refuse_tensor(void *context, int slot, size_t at, size_t count,
                                 const float *memory)
{
    (void)context;
    (void)slot;
    (void)count;
    (void)memory;
    return base_fail(BASE_ERR_PEER_LOST, "no worker has the tensor at %zu", at);
}

static void test_carrier(void **state)
{
    const struct nn_optimiser *adam = NULL;
    struct nn_graph *graph = support_graph(wide);
    struct train_state whole, bare, again;
    struct elsewhere from = {&whole, 0}, to = {&again, 0};
    struct model_carrier carrier = {bring, take, &from};
    char *folder = support_scratch();
    struct store_checkpoint c;
    json_t *about = json_object();

    (void)state;
    assert_int_equal(nn_optimiser_find("adam", &adam), BASE_OK);
    assert_int_equal(train_state_init(&whole, graph, adam), BASE_OK);
    assert_int_equal(train_state_init(&again, graph, adam), BASE_OK);
    assert_int_equal(train_state_describe(&bare, graph, adam), BASE_OK);
    assert_int_equal(train_state_start(&whole, 7), BASE_OK);
    for (size_t i = 0; i < whole.floats; i++)
        whole.slots[1][i] = whole.weights[i] * 2; /* padding stays zero */
    bare.position = good;
    assert_int_equal(train_state_save(&bare, &carrier, folder, about, 0), BASE_OK);
    assert_int_equal(from.calls, 3 * 4); /* two layers; weights and two slots */
    assert_int_equal(store_checkpoint_open(folder, false, &c), BASE_OK);
    carrier.context = &to;
    assert_int_equal(train_state_load(&bare, &carrier, &c), BASE_OK);
    assert_int_equal(to.calls, 3 * 4);
    assert_memory_equal(again.weights, whole.weights, whole.floats * sizeof(float));
    assert_memory_equal(again.slots[1], whole.slots[1], whole.floats * sizeof(float));
    carrier.take = refuse_tensor;
    assert_int_equal(train_state_load(&bare, &carrier, &c), BASE_ERR_PEER_LOST);
    store_checkpoint_close(&c);
    train_state_fini(&whole);
    train_state_fini(&again);
    train_state_fini(&bare);
    json_decref(about);
    nn_graph_free(graph);
    support_scratch_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_absurd_positions),
        cmocka_unit_test(test_manifest),   cmocka_unit_test(test_parts),
        cmocka_unit_test(test_carrier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
