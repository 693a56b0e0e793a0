/* SPDX-License-Identifier: MIT
 *
 * A saved rating model goes on with more ratings. Users and items are found by their ids, since
 * their numbers change when others come between them.
 */
#include <string.h>

#include "base/mem.h"
#include "recsys/saved.h"
#include "store/safetensors.h"

/* Is the option in "MODEL:option=value,…"? */
static bool is_given(const char *text, const char *option)
{
    const size_t length = strlen(option);

    for (const char *at = strchr(text, ':'); at != NULL; at = strchr(at + 1, ','))
        if (strncmp(at + 1, option, length) == 0 && at[1 + length] == '=')
            return true;
    return false;
}

base_status recsys_saved_text(const json_t *manifest, char **text_p)
{
    base_status st = BASE_OK;
    const struct recsys_model *model = NULL;
    const char *text = NULL;
    json_t *object = NULL, *facts = NULL;
    void *options = NULL;

    *text_p = NULL;
    TRY(base_json_object(manifest, "ratings", &object));
    TRY(base_json_string(object, "model", &text));
    TRY(base_json_array(object, "facts", &facts));
    TRY(recsys_model_find(text, &model, &options));
    if (model->sized_by == NULL || is_given(text, model->sized_by))
        *text_p = base_strdup(text);
    else
        *text_p = base_format("%s%s%s=%.0f", text, strchr(text, ':') != NULL ? "," : ":",
                              model->sized_by, json_number_value(json_array_get(facts, 0)));
out:
    base_free(options);
    return st;
}

/* ---- rows ---- */

struct growing {
    struct recsys_saved *saved;
    struct store_file *model;
    uint32_t *users, *items; /* the numbers that the saved ones have now */
};

/* `floats` of each of `count` users or items, side by side. */
static void copy_known(const float *from, float *to, const uint32_t *numbers, uint32_t count,
                       size_t floats)
{
    for (uint32_t i = 0; i < count; i++)
        memcpy(to + numbers[i] * floats, from + i * floats, floats * sizeof *to);
}

static base_status grow_buffer(const struct growing *g, const struct recsys_buffer *b)
{
    base_status st = BASE_OK;
    const struct recsys_fit *former = g->saved->fit;
    const struct store_tensor *t = store_find(g->model, b->name);
    const uint32_t *numbers = b->of == RECSYS_OF_USERS ? g->users : g->items;
    const uint32_t count = b->of == RECSYS_OF_USERS ? former->users : former->items;
    float *room = NULL;

    if (t == NULL)
        TRY(base_fail(BASE_ERR_DATA, "there is no tensor %s", b->name));
    if (!store_is_float(t->type) || t->rank != 2)
        TRY(base_fail(BASE_ERR_DATA, "tensor %s is no table of floats", b->name));
    if (b->of == RECSYS_NEITHER) {
        if (t->shape[0] == b->rows && t->shape[1] == b->width)
            store_read_floats(t, b->at);
        goto out; /* of other periods of time: they start new */
    }
    if (b->across ? t->shape[0] != b->rows || t->shape[1] != (uint64_t)count * 8
                  : t->shape[0] != count || t->shape[1] != b->width)
        TRY(base_fail(BASE_ERR_DATA, "tensor %s is not of the %u users or items that it was for",
                      b->name, count));
    TRY(base_tensor(t->shape[0] * t->shape[1], sizeof *room, b->name, &room));
    store_read_floats(t, room);
    if (!b->across)
        copy_known(room, b->at, numbers, count, b->width);
    for (size_t r = 0; b->across && r < b->rows; r++)
        copy_known(room + r * t->shape[1], b->at + r * b->width, numbers, count, 8);
out:
    base_free(room);
    return st;
}

static base_status check_known(const char *what, const uint32_t *numbers,
                               const struct recsys_ids *ids)
{
    struct recsys_id text;

    for (uint32_t i = 0; i < ids->count; i++)
        if (numbers[i] == RECSYS_NO_ID)
            return base_fail(BASE_ERR_DATA, "%s %s of the model is not in the data", what,
                             recsys_id_text(ids, i, &text));
    return BASE_OK;
}

base_status recsys_saved_grow(struct recsys_fit *fit, const struct recsys_ratings *ids,
                              const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;
    struct growing g = {0};
    char *path = NULL;

    TRY(recsys_saved_outline(checkpoint, &g.saved));
    TRY(store_checkpoint_file(checkpoint, RECSYS_MODEL_FILE, &path));
    TRY(store_open(path, &g.model));
    g.users = recsys_ids_match(&g.saved->users, &ids->user_ids);
    g.items = recsys_ids_match(&g.saved->items, &ids->item_ids);
    TRY(check_known("user", g.users, &g.saved->users));
    TRY(check_known("item", g.items, &g.saved->items));
    for (int i = 0; i < fit->buffer_count; i++)
        if (!fit->buffers[i].passing && !fit->buffers[i].late) /* those a sweep makes */
            TRY(grow_buffer(&g, &fit->buffers[i]));
    if (fit->model->grown != NULL)
        fit->model->grown(fit);
out:
    base_free(g.users);
    base_free(g.items);
    base_free(path);
    store_close(g.model);
    recsys_saved_close(g.saved);
    return base_prefix(st, "%s", checkpoint->path);
}
