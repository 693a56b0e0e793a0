/* SPDX-License-Identifier: MIT
 *
 * A rating model's files as they are written, and its tensors as a fit with ratings reads them.
 */
#include <string.h>

#include "base/mem.h"
#include "recsys/saved.h"
#include "store/safetensors.h"

/* ---- the model ---- */

static struct store_tensor tensor_of(const struct recsys_buffer *b)
{
    return (struct store_tensor){
        .name = b->name, .type = STORE_F32, .rank = 2, .shape = {b->rows, b->width}};
}

static base_status write_model(const struct recsys_fit *fit, const struct recsys_carrier *carrier,
                               const char *path)
{
    base_status st = BASE_OK;
    struct store_tensor tensors[RECSYS_MAX_BUFFERS];
    struct store_writer *writer = NULL;
    size_t count = 0;

    for (int i = 0; i < fit->buffer_count; i++)
        if (!fit->buffers[i].passing)
            tensors[count++] = tensor_of(&fit->buffers[i]);
    TRY(store_create(path, tensors, count, &writer));
    for (int i = 0; i < fit->buffer_count; i++) {
        const struct recsys_buffer *b = &fit->buffers[i];
        const size_t floats = (size_t)b->rows * b->width;
        const float *memory = b->at;

        if (b->passing)
            continue;
        if (carrier != NULL)
            TRY(carrier->bring(carrier->context, b->offset, floats, &memory));
        TRY(store_write(writer, memory, floats * sizeof *memory));
    }
    st = store_finish(writer);
    writer = NULL;
out:
    store_abandon(writer);
    return st;
}

/* Is the tensor of the buffer's rows and floats? A buffer of one row may be a vector. */
static bool is_shape_of(const struct store_tensor *t, const struct recsys_buffer *b)
{
    if (t->rank == 1)
        return b->rows == 1 && t->shape[0] == b->width;
    return t->rank == 2 && t->shape[0] == b->rows && t->shape[1] == b->width;
}

static base_status read_buffer(const struct store_file *file, const struct recsys_buffer *b,
                               const struct recsys_carrier *carrier)
{
    base_status st = BASE_OK;
    const struct store_tensor *t = store_find(file, b->name);
    const size_t floats = (size_t)b->rows * b->width;
    float *room = NULL;

    if (t == NULL)
        TRY(base_fail(BASE_ERR_DATA, "there is no tensor %s", b->name));
    if (!store_is_float(t->type) || !is_shape_of(t, b))
        TRY(base_fail(BASE_ERR_DATA, "tensor %s is not of %u rows of %u floats", b->name, b->rows,
                      b->width));
    if (carrier == NULL) {
        store_read_floats(t, b->at);
        goto out;
    }
    TRY(base_tensor(floats, sizeof *room, b->name, &room));
    store_read_floats(t, room);
    TRY(carrier->take(carrier->context, b->offset, floats, room));
out:
    base_free(room);
    return st;
}

base_status recsys_saved_read(const struct recsys_fit *fit, const char *path,
                              const struct recsys_carrier *carrier)
{
    base_status st = BASE_OK;
    struct store_file *file = NULL;

    TRY(store_open(path, &file));
    for (int i = 0; i < fit->buffer_count; i++)
        if (!fit->buffers[i].passing)
            TRY(base_prefix(read_buffer(file, &fit->buffers[i], carrier), "%s", path));
out:
    store_close(file);
    return st;
}

/* ---- ids and ratings ---- */

enum { MOST_PARTS = 6 };

/* Tensors whose bytes are in memory. */
struct parts {
    struct store_tensor tensors[MOST_PARTS];
    const void *bytes[MOST_PARTS];
    size_t count;
};

static void add_part(struct parts *p, const char *name, enum store_type type, uint64_t count,
                     const void *bytes)
{
    p->tensors[p->count] =
        (struct store_tensor){.name = name, .type = type, .rank = 1, .shape = {count}};
    p->bytes[p->count++] = bytes;
}

static base_status write_parts(const struct parts *p, const char *path)
{
    base_status st = BASE_OK;
    struct store_writer *writer = NULL;

    TRY(store_create(path, p->tensors, p->count, &writer));
    for (size_t i = 0; i < p->count; i++)
        TRY(store_write(writer, p->bytes[i],
                        p->tensors[i].shape[0] * store_type_size(p->tensors[i].type)));
    st = store_finish(writer);
    writer = NULL;
out:
    store_abandon(writer);
    return st;
}

/* Numbers, or texts with a zero after each and where each begins. */
static void add_ids(struct parts *p, const struct recsys_ids *ids, const char *const names[3])
{
    if (ids->number != NULL) {
        add_part(p, names[0], STORE_U32, ids->count, ids->number);
        return;
    }
    add_part(p, names[1], STORE_I64, (uint64_t)ids->count + 1, ids->text_start);
    add_part(p, names[2], STORE_U8, ids->text_start[ids->count], ids->text);
}

static base_status write_ids(const struct recsys_ratings *ids, const char *path)
{
    static const char *const users[] = {"user", "user_start", "user_text"};
    static const char *const items[] = {"item", "item_start", "item_text"};
    struct parts p = {0};

    add_ids(&p, &ids->user_ids, users);
    add_ids(&p, &ids->item_ids, items);
    return write_parts(&p, path);
}

static base_status write_rated(const struct recsys_rows *rows, const char *path)
{
    struct parts p = {0};

    add_part(&p, "start", STORE_I64, (uint64_t)rows->rows + 1, rows->start);
    add_part(&p, "item", STORE_U32, rows->count, rows->column);
    if (rows->code != NULL)
        add_part(&p, "code", STORE_U8, rows->count, rows->code);
    else
        add_part(&p, "value", STORE_F32, rows->count, rows->value);
    return write_parts(&p, path);
}

base_status recsys_saved_write(const struct recsys_fit *fit, const struct recsys_ratings *ids,
                               const struct recsys_carrier *carrier, struct store_save *save)
{
    base_status st = write_model(fit, carrier, store_save_path(save, RECSYS_MODEL_FILE));

    return st == BASE_OK ? recsys_saved_write_rated(fit, ids, save) : st;
}

base_status recsys_saved_write_rated(const struct recsys_fit *fit, const struct recsys_ratings *ids,
                                     struct store_save *save)
{
    base_status st = BASE_OK;

    if (!store_save_repeat(save, RECSYS_IDS_FILE))
        TRY(write_ids(ids, store_save_path(save, RECSYS_IDS_FILE)));
    if (!store_save_repeat(save, RECSYS_RATED_FILE))
        TRY(write_rated(fit->by_user, store_save_path(save, RECSYS_RATED_FILE)));
out:
    return st;
}

/* ---- the manifest ---- */

json_t *recsys_saved_manifest(const struct recsys_fit *fit, const char *model)
{
    const struct recsys_scale *scale = fit->scale;
    json_t *levels = json_array(), *facts = json_array();

    for (uint32_t i = 0; i < scale->levels; i++)
        json_array_append_new(levels, json_real((double)scale->level[i]));
    for (int i = 0; i < fit->fact_count; i++)
        json_array_append_new(facts, json_real(fit->facts[i]));
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:{s:f, s:f, s:f, s:o}, s:o, s:I}", "model",
                     model, "users", (json_int_t)fit->users, "items", (json_int_t)fit->items,
                     "ratings", (json_int_t)fit->by_user->count, "sweeps", (json_int_t)fit->sweeps,
                     "mean", (double)fit->mean, "scale", "lowest", (double)scale->lowest, "highest",
                     (double)scale->highest, "step", (double)scale->step, "levels", levels, "facts",
                     facts, "seed", (json_int_t)fit->seed);
}
