/* SPDX-License-Identifier: MIT */
#include "model/weights.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/safetensors.h"

base_status model_weights_init(struct model_weights *w, const struct nn_graph *graph)
{
    base_status st = BASE_OK;

    *w = (struct model_weights){.graph = graph, .floats = nn_graph_weight_floats(graph)};
    TRY(base_tensor(w->floats, sizeof(float), "the weights", &w->weights));
    TRY(base_tensor(nn_graph_stat_floats(graph), sizeof(float), "the running statistics",
                    &w->statistics));
    w->tracked = base_calloc(nn_graph_stats(graph), sizeof *w->tracked);
out:
    if (st != BASE_OK)
        model_weights_fini(w);
    return st;
}

void model_weights_fini(struct model_weights *w)
{
    base_free(w->weights);
    base_free(w->statistics);
    base_free(w->tracked);
    *w = (struct model_weights){0};
}

/* ---- the tensors of a file, in its order: what is written and what is looked for ---- */

struct item {
    struct store_tensor head;       /* owns its name */
    const struct nn_tensor *tensor; /* NULL: `tracked` */
    float *memory;                  /* of the tensor; NULL: a carrier has it */
    int slot;                       /* -1: of the weights */
    int64_t *tracked;
};

struct items {
    struct item *at;
    size_t count;
    const struct model_carrier *carrier;
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

/* `buffer` NULL: a carrier has it. */
static void add_tensor(struct items *items, const struct nn_tensor *tensor, char *name, int slot,
                       float *buffer)
{
    struct store_tensor head = {.name = name, .type = STORE_F32, .rank = tensor->rank};

    /* A dense weight is (O, C*H*W) in files, (O,C,H,W) in memory. */
    for (int i = 0; i < tensor->rank; i++)
        head.shape[i] = (uint64_t)tensor->dims[i];
    if (tensor->rank == 2)
        head.shape[1] = (uint64_t)tensor->values / (uint64_t)tensor->dims[0];
    add_item(items, (struct item){.head = head,
                                  .tensor = tensor,
                                  .slot = slot,
                                  .memory = buffer != NULL ? buffer + tensor->offset : NULL});
}

/* Beside "bn1.running_mean" a file has "bn1.num_batches_tracked". */
static void add_tracked(struct items *items, const struct nn_tensor *tensor, int64_t *tracked)
{
    static const char suffix[] = "running_mean";
    size_t length = strlen(tensor->name), tail = sizeof suffix - 1;

    if (length < tail || strcmp(tensor->name + length - tail, suffix) != 0)
        return;
    add_item(items, (struct item){.head = {.name = base_format("%.*snum_batches_tracked",
                                                               (int)(length - tail), tensor->name),
                                           .type = STORE_I64},
                                  .tracked = tracked});
}

static struct items list_weights(const struct model_weights *w)
{
    struct items items = {.carrier = w->carrier};

    for (size_t i = 0; i < nn_graph_params(w->graph); i++) {
        const struct nn_tensor *t = nn_graph_param(w->graph, i);

        add_tensor(&items, t, base_strdup(t->name), -1, w->carrier == NULL ? w->weights : NULL);
    }
    for (size_t i = 0; i < nn_graph_stats(w->graph); i++) {
        const struct nn_tensor *t = nn_graph_stat(w->graph, i);

        add_tensor(&items, t, base_strdup(t->name), -1, w->statistics);
        add_tracked(&items, t, &w->tracked[i]);
    }
    return items;
}

static struct items list_slots(const struct model_slots *slots)
{
    struct items items = {.carrier = slots->carrier};

    for (int slot = 0; slot < slots->count; slot++)
        for (size_t i = 0; i < nn_graph_params(slots->graph); i++) {
            const struct nn_tensor *t = nn_graph_param(slots->graph, i);

            add_tensor(&items, t, base_format("%s.%s", slots->names[slot], t->name),
                       slots->first + slot, slots->carrier == NULL ? slots->at[slot] : NULL);
        }
    return items;
}

/* Room for the largest tensor: canonical, or as in memory. */
static base_status make_room(const struct items *items, bool canonical, float **room_p)
{
    size_t most = 1;

    for (size_t i = 0; i < items->count; i++) {
        const struct nn_tensor *t = items->at[i].tensor;
        size_t floats = t == NULL ? 0 : canonical ? t->values : t->floats;

        most = floats > most ? floats : most;
    }
    return base_tensor(most, sizeof(float), "a tensor between memory and file", room_p);
}

/* ---- writing ---- */

static base_status bring(const struct items *items, const struct item *item, const float **memory_p)
{
    const struct model_carrier *carrier = items->carrier;

    *memory_p = item->memory;
    if (carrier == NULL || item->memory != NULL)
        return BASE_OK;
    return carrier->bring(carrier->context, item->slot, item->tensor->offset, item->tensor->floats,
                          memory_p);
}

static base_status write_items(const struct items *items, const char *path)
{
    base_status st = BASE_OK;
    struct store_tensor *heads = base_calloc(items->count, sizeof *heads);
    struct store_writer *writer = NULL;
    float *canonical = NULL;

    TRY(make_room(items, true, &canonical));
    for (size_t i = 0; i < items->count; i++)
        heads[i] = items->at[i].head;
    TRY(store_create(path, heads, items->count, &writer));
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->at[i];
        const float *memory;

        if (item->tensor == NULL) {
            TRY(store_write(writer, item->tracked, sizeof *item->tracked));
            continue;
        }
        TRY(bring(items, item, &memory));
        nn_tensor_export(item->tensor, memory, canonical);
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

base_status model_weights_write(const struct model_weights *w, const char *path)
{
    struct items items = list_weights(w);
    base_status st = write_items(&items, path);

    free_items(&items);
    return st;
}

base_status model_slots_write(const struct model_slots *slots, const char *path)
{
    struct items items = list_slots(slots);
    base_status st = write_items(&items, path);

    free_items(&items);
    return st;
}

/* ---- reading ---- */

static bool same_shape(const struct store_tensor *a, const struct store_tensor *b)
{
    return store_is_float(b->type) && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

/* PyTorch's DataParallel puts "module." before each name. */
static const struct store_tensor *find_tensor(const struct store_file *file, const char *name)
{
    const struct store_tensor *found = store_find(file, name);
    char *wrapped;

    if (found != NULL)
        return found;
    wrapped = base_format("module.%s", name);
    found = store_find(file, wrapped);
    base_free(wrapped);
    return found;
}

static base_status check_tensor(const struct item *item, const struct store_tensor *found)
{
    if (found == NULL)
        return base_fail(BASE_ERR_DATA, "tensor %s is missing from the file", item->head.name);
    if (!same_shape(&item->head, found))
        return base_fail(BASE_ERR_DATA, "tensor %s has another shape or type than the model's",
                         item->head.name);
    return BASE_OK;
}

/* `room` is for a tensor of a carrier. */
static base_status read_tensor(const struct items *items, const struct item *item,
                               const struct store_tensor *found, float *canonical, float *room)
{
    const struct model_carrier *carrier = items->carrier;
    float *memory = item->memory != NULL ? item->memory : room;

    store_read_floats(found, canonical);
    nn_tensor_import(item->tensor, canonical, memory);
    if (carrier == NULL || item->memory != NULL)
        return BASE_OK;
    return carrier->take(carrier->context, item->slot, item->tensor->offset, item->tensor->floats,
                         memory);
}

static void read_tracked(const struct item *item, const struct store_tensor *found)
{
    if (found != NULL && found->type == STORE_I64 && found->bytes == sizeof *item->tracked)
        memcpy(item->tracked, found->data, sizeof *item->tracked);
}

/* skipped NULL: a tensor that cannot be read is an error; otherwise its name is added there. */
static base_status read_items(const struct items *items, const struct store_file *file,
                              struct base_str *skipped, size_t *loaded_p)
{
    base_status st = BASE_OK;
    float *canonical = NULL, *room = NULL;

    *loaded_p = 0;
    TRY(make_room(items, true, &canonical));
    if (items->carrier != NULL)
        TRY(make_room(items, false, &room));
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->at[i];
        const struct store_tensor *found = find_tensor(file, item->head.name);

        if (item->tensor == NULL) {
            read_tracked(item, found);
            continue;
        }
        st = check_tensor(item, found);
        if (st != BASE_OK && skipped == NULL)
            goto out;
        if (st != BASE_OK) {
            base_str_add(skipped, "%s%s", skipped->length ? ", " : "", item->head.name);
            st = BASE_OK;
            continue;
        }
        TRY(read_tensor(items, item, found, canonical, room));
        (*loaded_p)++;
    }
out:
    base_free(room);
    base_free(canonical);
    return st;
}

static size_t count_tensors(const struct items *items)
{
    size_t count = 0;

    for (size_t i = 0; i < items->count; i++)
        count += items->at[i].tensor != NULL;
    return count;
}

base_status model_weights_read(const struct model_weights *w, const char *path, bool partial)
{
    base_status st = BASE_OK;
    struct items items = list_weights(w);
    struct store_file *file = NULL;
    struct base_str skipped = {0};
    size_t loaded = 0;

    TRY(store_open(path, &file));
    TRY(base_prefix(read_items(&items, file, partial ? &skipped : NULL, &loaded), "%s", path));
    if (loaded == 0)
        TRY(base_fail(BASE_ERR_DATA,
                      "%s has no tensor in common with the model: it has %s%s, the model %s", path,
                      store_count(file) > 0 ? "for example " : "none",
                      store_count(file) > 0 ? store_at(file, 0)->name : "",
                      items.count > 0 ? items.at[0].head.name : "none"));
    if (partial)
        base_info("%zu of %zu tensors taken from %s", loaded, count_tensors(&items), path);
    if (skipped.length > 0)
        base_info("not in %s with this shape, so they start new: %s", path, skipped.text);
out:
    base_str_fini(&skipped);
    store_close(file);
    free_items(&items);
    return st;
}

base_status model_slots_read(const struct model_slots *slots, const char *path)
{
    base_status st = BASE_OK;
    struct items items = list_slots(slots);
    struct store_file *file = NULL;
    size_t loaded = 0;

    TRY(store_open(path, &file));
    TRY(base_prefix(read_items(&items, file, NULL, &loaded), "%s", path));
out:
    store_close(file);
    free_items(&items);
    return st;
}
