/* SPDX-License-Identifier: MIT
 *
 * The state in checkpoints.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/safetensors.h"
#include "train/state.h"

#define SLOTS_FILE "state.safetensors"

/* The state's buffers as src/model sees them; they still belong to the state. */
static struct model_weights weights_of(const struct train_state *state,
                                       const struct model_carrier *carrier)
{
    return (struct model_weights){.graph = state->graph,
                                  .carrier = carrier,
                                  .floats = state->floats,
                                  .weights = state->weights,
                                  .statistics = state->statistics,
                                  .tracked = state->tracked};
}

/* Names of all slots: those of the optimiser, then the extras. */
static void name_slots(const struct train_state *state, const char *names[TRAIN_MAX_SLOTS])
{
    for (int i = 0; i < train_state_buffers(state, TRAIN_SLOTS); i++)
        names[i] = i < state->optimiser->slots ? state->optimiser->slot_names[i]
                                               : state->extras[i - state->optimiser->slots];
}

static struct model_slots slots_of(const struct train_state *state,
                                   const struct model_carrier *carrier, const char *const *names,
                                   int first, int count)
{
    return (struct model_slots){.graph = state->graph,
                                .carrier = carrier,
                                .first = first,
                                .count = count,
                                .names = names + first,
                                .at = state->slots + first};
}

json_t *train_position_to_json(const struct train_position *p)
{
    return json_pack("{s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I}", "step",
                     (json_int_t)p->step, "epoch", (json_int_t)p->epoch, "cursor",
                     (json_int_t)p->cursor, "loss_sum", p->loss_sum, "correct",
                     (json_int_t)p->correct, "seen", (json_int_t)p->seen, "epoch_loss",
                     p->epoch_loss, "epoch_accuracy", p->epoch_accuracy, "best_validation",
                     p->best_validation, "best_step", (json_int_t)p->best_step, "stale_epochs",
                     (json_int_t)p->stale_epochs, "plan_start", (json_int_t)p->plan_start);
}

base_status train_state_write(const struct train_state *state, const struct model_carrier *carrier,
                              struct store_save *save)
{
    base_status st = BASE_OK;
    struct model_weights weights = weights_of(state, carrier);
    const char *names[TRAIN_MAX_SLOTS] = {NULL};
    struct model_slots slots =
        slots_of(state, carrier, names, 0, train_state_buffers(state, TRAIN_SLOTS));

    name_slots(state, names);
    TRY(model_weights_write(&weights, store_save_path(save, MODEL_WEIGHTS_FILE)));
    TRY(model_slots_write(&slots, store_save_path(save, SLOTS_FILE)));
out:
    return st;
}

base_status train_state_commit(const struct train_state *state, struct store_save *save,
                               json_t *about, unsigned keep)
{
    json_object_set_new(about, "position", train_position_to_json(&state->position));
    json_object_set_new(about, "optimiser", json_string(state->optimiser->name));
    return store_save_commit(save, about, keep);
}

base_status train_state_save(const struct train_state *state, const struct model_carrier *carrier,
                             const char *dir, json_t *about, unsigned keep)
{
    base_status st = BASE_OK;
    struct store_save *save = NULL;

    TRY(store_save_begin(dir, (uint64_t)state->position.step, &save));
    TRY(train_state_write(state, carrier, save));
    st = train_state_commit(state, save, about, keep);
    save = NULL;
out:
    store_save_abandon(save);
    return st;
}

/* A training cannot have got anywhere else: every epoch has a step, and counts are of what was. */
static base_status check_position(const struct train_position *p)
{
    static const int64_t MOST = (int64_t)1 << 53; /* far from overflow, and exact in a double */
    const struct {
        const char *name;
        int64_t value, most;
    } fields[] = {
        {"step", p->step, MOST},
        {"epoch", p->epoch, p->step},
        {"cursor", p->cursor, MOST},
        {"seen", p->seen, MOST},
        {"correct", p->correct, p->seen},
        {"best_step", p->best_step, p->step},
        {"stale_epochs", p->stale_epochs, p->epoch},
        {"plan_start", p->plan_start, p->step},
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value < 0 || fields[i].value > fields[i].most)
            return base_fail(BASE_ERR_DATA, "\"%s\" is %lld, 0 to %lld expected", fields[i].name,
                             (long long)fields[i].value, (long long)fields[i].most);
    return BASE_OK;
}

base_status train_position_from_json(const json_t *object, struct train_position *p)
{
    base_status st = BASE_OK;

    TRY(base_json_integer(object, "step", &p->step));
    TRY(base_json_integer(object, "epoch", &p->epoch));
    TRY(base_json_integer(object, "cursor", &p->cursor));
    TRY(base_json_real(object, "loss_sum", &p->loss_sum));
    TRY(base_json_integer(object, "correct", &p->correct));
    TRY(base_json_integer(object, "seen", &p->seen));
    TRY(base_json_real(object, "epoch_loss", &p->epoch_loss));
    TRY(base_json_real(object, "epoch_accuracy", &p->epoch_accuracy));
    TRY(base_json_real(object, "best_validation", &p->best_validation));
    TRY(base_json_integer(object, "best_step", &p->best_step));
    TRY(base_json_integer(object, "stale_epochs", &p->stale_epochs));
    p->plan_start = 0;
    if (json_object_get(object, "plan_start") != NULL) /* earlier checkpoints have none */
        TRY(base_json_integer(object, "plan_start", &p->plan_start));
    TRY(check_position(p));
out:
    return st;
}

base_status train_state_load_weights(struct train_state *state, const struct model_carrier *carrier,
                                     const char *path, bool partial)
{
    struct model_weights weights = weights_of(state, carrier);

    return model_weights_read(&weights, path, partial);
}

/* The slots mean nothing to another optimiser. */
static base_status load_slots(struct train_state *state, const struct model_carrier *carrier,
                              const struct store_checkpoint *checkpoint, const char *path)
{
    struct model_slots slots =
        slots_of(state, carrier, state->optimiser->slot_names, 0, state->optimiser->slots);
    const char *optimiser = NULL;
    base_status st = BASE_OK;

    TRY(base_json_string(checkpoint->manifest, "optimiser", &optimiser));
    if (strcmp(optimiser, state->optimiser->name) != 0) {
        base_warn("%s was trained with %s: the state of %s starts new", checkpoint->path, optimiser,
                  state->optimiser->name);
        goto out;
    }
    TRY(model_slots_read(&slots, path));
out:
    return st;
}

/* Is it a tensor "NAME.P" of the file? */
static bool is_of(const struct store_tensor *tensor, const char *name)
{
    size_t length = strlen(name);

    return strncmp(tensor->name, name, length) == 0 && tensor->name[length] == '.';
}

static bool has_slot(const struct store_file *file, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < store_count(file); i++)
        found |= is_of(store_at(file, i), name);
    return found;
}

/* What a strategy has kept means nothing to another one. */
static void tell_dropped(const struct train_state *state, const struct store_file *file,
                         const char *path)
{
    size_t unknown = 0;

    for (size_t i = 0; i < store_count(file); i++) {
        bool known = !is_of(store_at(file, i), "strategy");

        for (int e = 0; state->extras != NULL && state->extras[e] != NULL; e++)
            known |= is_of(store_at(file, i), state->extras[e]);
        unknown += !known;
    }
    if (unknown > 0)
        base_info("%s has %zu tensors of another strategy, which are dropped", path, unknown);
}

static base_status load_extras(struct train_state *state, const struct model_carrier *carrier,
                               const char *path)
{
    base_status st = BASE_OK;
    const char *names[TRAIN_MAX_SLOTS] = {NULL};
    struct store_file *file = NULL;

    name_slots(state, names);
    TRY(store_open(path, &file));
    for (int i = state->optimiser->slots; i < train_state_buffers(state, TRAIN_SLOTS); i++) {
        struct model_slots slot = slots_of(state, carrier, names, i, 1);

        if (has_slot(file, names[i]))
            TRY(model_slots_read(&slot, path));
        else
            base_info("%s has no %s, which starts at zero", path, names[i]);
    }
    tell_dropped(state, file, path);
out:
    store_close(file);
    return st;
}

base_status train_state_load_position(struct train_state *state,
                                      const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;
    json_t *position = NULL;

    TRY(base_json_object(checkpoint->manifest, "position", &position));
    TRY(base_prefix(train_position_from_json(position, &state->position), "\"position\""));
    if ((uint64_t)state->position.step != checkpoint->step)
        TRY(base_fail(BASE_ERR_DATA, "\"position\" is of step %lld, the checkpoint of step %llu",
                      (long long)state->position.step, (unsigned long long)checkpoint->step));
out:
    return base_prefix(st, "%s/manifest.json", checkpoint->path);
}

base_status train_state_load(struct train_state *state, const struct model_carrier *carrier,
                             const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;
    char *path = NULL;

    TRY(store_checkpoint_file(checkpoint, MODEL_WEIGHTS_FILE, &path));
    TRY(train_state_load_weights(state, carrier, path, false));
    TRY(train_state_load_position(state, checkpoint));
    base_free(path);
    TRY(store_checkpoint_file(checkpoint, SLOTS_FILE, &path));
    TRY(load_slots(state, carrier, checkpoint, path));
    TRY(load_extras(state, carrier, path));
out:
    base_free(path);
    return st;
}
