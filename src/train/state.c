/* SPDX-License-Identifier: MIT */
#include "train/state.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "nn/simd/simd.h"
#include "store/safetensors.h"

base_status train_state_init(struct train_state *state, const struct nn_graph *graph,
                             const struct nn_optimiser *optimiser)
{
    base_status st = BASE_OK;
    size_t floats = nn_graph_weight_floats(graph);

    *state = (struct train_state){.graph = graph, .optimiser = optimiser, .floats = floats};
    state->position.best_validation = -1;
    TRY(base_tensor(floats, sizeof(float), "the weights", &state->weights));
    TRY(base_tensor(nn_graph_stat_floats(graph), sizeof(float), "the running statistics",
                    &state->statistics));
    state->tracked = base_calloc(nn_graph_stats(graph), sizeof *state->tracked);
    if (optimiser == NULL)
        goto out;
    for (int i = 0; i < optimiser->slots; i++)
        TRY(base_tensor(floats, sizeof(float), "the optimiser's state", &state->slots[i]));
out:
    return st;
}

void train_state_fini(struct train_state *state)
{
    base_free(state->weights);
    base_free(state->statistics);
    base_free(state->tracked);
    for (int i = 0; i < NN_MAX_SLOTS; i++)
        base_free(state->slots[i]);
    *state = (struct train_state){0};
}

bool train_state_finite(const struct train_state *state)
{
    return isfinite(nn_simd()->square_sum(state->floats, state->weights));
}

/* ---- tensors and their names in files ---- */

static struct store_tensor describe(const struct nn_tensor *tensor, const char *name)
{
    struct store_tensor t = {.name = name, .type = STORE_F32, .rank = tensor->rank};

    /* A dense weight is (O, C*H*W) in files, (O,C,H,W) in memory. */
    for (int i = 0; i < tensor->rank; i++)
        t.shape[i] = (uint64_t)tensor->dims[i];
    if (tensor->rank == 2)
        t.shape[1] = (uint64_t)tensor->values / (uint64_t)tensor->dims[0];
    return t;
}

static bool same_shape(const struct store_tensor *a, const struct store_tensor *b)
{
    return a->type == b->type && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

/* "bn1.running_mean" → "bn1.num_batches_tracked"; NULL for other tensors. */
static char *tracked_name(const struct nn_tensor *tensor)
{
    static const char suffix[] = "running_mean";
    size_t length = strlen(tensor->name), tail = sizeof suffix - 1;

    if (length < tail || strcmp(tensor->name + length - tail, suffix) != 0)
        return NULL;
    return base_format("%.*snum_batches_tracked", (int)(length - tail), tensor->name);
}

/* A list of tensors about to be written, with their sources. */
struct item {
    struct store_tensor head;
    const struct nn_tensor *tensor; /* NULL: `tracked` */
    const float *memory;
    const int64_t *tracked;
};

struct items {
    struct item *at;
    size_t count;
};

static void add_item(struct items *items, struct item item)
{
    items->at = base_realloc(items->at, items->count + 1, sizeof *items->at);
    items->at[items->count++] = item;
}

static void free_items(struct items *items)
{
    for (size_t i = 0; i < items->count; i++)
        base_free((void *)(uintptr_t)items->at[i].head.name);
    base_free(items->at);
}

static void list_model(const struct train_state *state, struct items *items)
{
    const struct nn_graph *graph = state->graph;

    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        add_item(items, (struct item){.head = describe(t, base_strdup(t->name)),
                                      .tensor = t,
                                      .memory = state->weights + t->offset});
    }
    for (size_t i = 0; i < nn_graph_stats(graph); i++) {
        const struct nn_tensor *t = nn_graph_stat(graph, i);
        char *name = tracked_name(t);

        add_item(items, (struct item){.head = describe(t, base_strdup(t->name)),
                                      .tensor = t,
                                      .memory = state->statistics + t->offset});
        if (name != NULL)
            add_item(items, (struct item){.head = {.name = name, .type = STORE_I64},
                                          .tracked = &state->tracked[i]});
    }
}

static void list_slots(const struct train_state *state, struct items *items)
{
    for (int slot = 0; slot < state->optimiser->slots; slot++)
        for (size_t i = 0; i < nn_graph_params(state->graph); i++) {
            const struct nn_tensor *t = nn_graph_param(state->graph, i);
            char *name = base_format("%s.%s", state->optimiser->slot_names[slot], t->name);

            add_item(items, (struct item){.head = describe(t, name),
                                          .tensor = t,
                                          .memory = state->slots[slot] + t->offset});
        }
}

static size_t largest(const struct train_state *state)
{
    size_t most = 1;

    for (size_t i = 0; i < nn_graph_params(state->graph); i++)
        if (nn_graph_param(state->graph, i)->values > most)
            most = nn_graph_param(state->graph, i)->values;
    for (size_t i = 0; i < nn_graph_stats(state->graph); i++)
        if (nn_graph_stat(state->graph, i)->values > most)
            most = nn_graph_stat(state->graph, i)->values;
    return most;
}

static base_status write_items(const struct train_state *state, const struct items *items,
                               const char *path)
{
    base_status st = BASE_OK;
    struct store_tensor *heads = base_calloc(items->count, sizeof *heads);
    struct store_writer *writer = NULL;
    float *canonical = NULL;

    TRY(base_tensor(largest(state), sizeof(float), "a tensor on its way to a file", &canonical));
    for (size_t i = 0; i < items->count; i++)
        heads[i] = items->at[i].head;
    TRY(store_create(path, heads, items->count, &writer));
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->at[i];

        if (item->tensor == NULL) {
            TRY(store_write(writer, item->tracked, sizeof *item->tracked));
            continue;
        }
        nn_tensor_export(item->tensor, item->memory, canonical);
        TRY(store_write(writer, canonical, item->tensor->values * sizeof(float)));
    }
    st = store_finish(writer);
    writer = NULL;
out:
    store_abandon(writer);
    base_free(canonical);
    base_free(heads);
    return st;
}

json_t *train_position_to_json(const struct train_position *p)
{
    return json_pack(
        "{s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:f, s:I, s:I}", "step", (json_int_t)p->step,
        "epoch", (json_int_t)p->epoch, "cursor", (json_int_t)p->cursor, "loss_sum", p->loss_sum,
        "correct", (json_int_t)p->correct, "seen", (json_int_t)p->seen, "epoch_loss", p->epoch_loss,
        "epoch_accuracy", p->epoch_accuracy, "best_validation", p->best_validation, "best_step",
        (json_int_t)p->best_step, "stale_epochs", (json_int_t)p->stale_epochs);
}

base_status train_state_save(const struct train_state *state, const char *dir, json_t *about,
                             unsigned keep)
{
    base_status st = BASE_OK;
    struct store_save *save = NULL;
    struct items model = {0}, slots = {0};

    TRY(store_save_begin(dir, (uint64_t)state->position.step, &save));
    list_model(state, &model);
    TRY(write_items(state, &model, store_save_path(save, "model.safetensors")));
    list_slots(state, &slots);
    TRY(write_items(state, &slots, store_save_path(save, "state.safetensors")));
    json_object_set_new(about, "position", train_position_to_json(&state->position));
    json_object_set_new(about, "optimiser", json_string(state->optimiser->name));
    st = store_save_commit(save, about, keep);
    save = NULL;
out:
    store_save_abandon(save);
    free_items(&model);
    free_items(&slots);
    return st;
}

/* ---- loading ---- */

/* Copies `found` into the tensor; NULL or another shape is an error that says both. */
static base_status import(const struct nn_tensor *tensor, const char *name,
                          const struct store_tensor *found, float *memory)
{
    struct store_tensor wanted = describe(tensor, name);
    float *canonical = NULL;
    base_status st = BASE_OK;

    if (found == NULL)
        return base_fail(BASE_ERR_DATA, "tensor %s is missing from the file", name);
    if (!same_shape(&wanted, found))
        return base_fail(BASE_ERR_DATA, "tensor %s has another shape or type than the model's",
                         name);
    /* Data in a file may be unaligned. */
    TRY(base_tensor(tensor->values, sizeof(float), name, &canonical));
    memcpy(canonical, found->data, found->bytes);
    nn_tensor_import(tensor, canonical, memory + tensor->offset);
out:
    base_free(canonical);
    return st;
}

static void load_tracked(struct train_state *state, const struct store_file *file, size_t index)
{
    char *name = tracked_name(nn_graph_stat(state->graph, index));
    const struct store_tensor *found = name != NULL ? store_find(file, name) : NULL;

    if (found != NULL && found->type == STORE_I64 && found->bytes == sizeof *state->tracked)
        memcpy(&state->tracked[index], found->data, sizeof *state->tracked);
    base_free(name);
}

base_status train_state_load_weights(struct train_state *state, const char *path, bool partial)
{
    base_status st = BASE_OK;
    struct store_file *file = NULL;
    struct base_str skipped = {0};
    size_t params = nn_graph_params(state->graph), stats = nn_graph_stats(state->graph), loaded = 0;

    TRY(store_open(path, &file));
    for (size_t i = 0; i < params + stats; i++) {
        bool is_stat = i >= params;
        const struct nn_tensor *t =
            is_stat ? nn_graph_stat(state->graph, i - params) : nn_graph_param(state->graph, i);

        st = base_prefix(import(t, t->name, store_find(file, t->name),
                                is_stat ? state->statistics : state->weights),
                         "%s", path);
        if (st != BASE_OK && !partial)
            goto out;
        if (st != BASE_OK)
            base_str_add(&skipped, "%s%s", skipped.length ? ", " : "", t->name);
        else
            loaded++;
        st = BASE_OK;
        if (is_stat)
            load_tracked(state, file, i - params);
    }
    if (loaded == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s has no tensor in common with the model", path));
    if (skipped.length > 0)
        base_info("not in %s with this shape, so they start new: %s", path, skipped.text);
out:
    base_str_fini(&skipped);
    store_close(file);
    return st;
}

static base_status load_slots(struct train_state *state, const char *path)
{
    base_status st = BASE_OK;
    struct store_file *file = NULL;

    TRY(store_open(path, &file));
    for (int slot = 0; slot < state->optimiser->slots; slot++)
        for (size_t i = 0; i < nn_graph_params(state->graph); i++) {
            const struct nn_tensor *t = nn_graph_param(state->graph, i);
            char *name = base_format("%s.%s", state->optimiser->slot_names[slot], t->name);

            st = base_prefix(import(t, name, store_find(file, name), state->slots[slot]), "%s",
                             path);
            base_free(name);
            if (st != BASE_OK)
                goto out;
        }
out:
    store_close(file);
    return st;
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
    if (p->step < 0 || p->epoch < 0 || p->cursor < 0)
        TRY(base_fail(BASE_ERR_DATA, "the position in the data is negative"));
out:
    return st;
}

base_status train_state_load(struct train_state *state, const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;
    char *model = base_format("%s/model.safetensors", checkpoint->path);
    char *slots = base_format("%s/state.safetensors", checkpoint->path);
    const char *optimiser = NULL;
    json_t *position = NULL;

    TRY(train_state_load_weights(state, model, false));
    if (state->optimiser == NULL)
        goto out;
    TRY(base_json_object(checkpoint->manifest, "position", &position));
    TRY(train_position_from_json(position, &state->position));
    TRY(base_json_string(checkpoint->manifest, "optimiser", &optimiser));
    if (strcmp(optimiser, state->optimiser->name) == 0)
        TRY(load_slots(state, slots));
    else
        base_warn("%s was trained with %s: the state of %s starts new", checkpoint->path, optimiser,
                  state->optimiser->name);
out:
    base_free(model);
    base_free(slots);
    return st;
}
