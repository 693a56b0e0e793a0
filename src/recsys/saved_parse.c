/* SPDX-License-Identifier: MIT
 *
 * What a checkpoint says of a rating model besides its tensors: manifest, ids and rated items. They
 * come from outside: what is used as an index or a size is checked here.
 */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "recsys/model_private.h"
#include "recsys/saved.h"
#include "store/safetensors.h"

/* ---- the manifest ---- */

static base_status read_float(const json_t *object, const char *key, float *value_p)
{
    double value = 0;
    base_status st = base_json_real(object, key, &value);

    *value_p = (float)value;
    if (st == BASE_OK && !isfinite(*value_p))
        st = base_fail(BASE_ERR_DATA, "\"%s\" is not a number that a float holds", key);
    return st;
}

static base_status read_scale(const json_t *object, struct recsys_scale *scale)
{
    base_status st = BASE_OK;
    json_t *levels = NULL;

    TRY(read_float(object, "lowest", &scale->lowest));
    TRY(read_float(object, "highest", &scale->highest));
    TRY(read_float(object, "step", &scale->step));
    TRY(base_json_array(object, "levels", &levels));
    if (json_array_size(levels) > RECSYS_MAX_LEVELS || scale->lowest > scale->highest)
        TRY(base_fail(BASE_ERR_DATA, "a scale from %g to %g of %zu levels", (double)scale->lowest,
                      (double)scale->highest, json_array_size(levels)));
    scale->levels = (uint32_t)json_array_size(levels);
    for (uint32_t i = 0; i < scale->levels; i++) {
        scale->level[i] = (float)json_number_value(json_array_get(levels, i));
        if (!isfinite(scale->level[i]) || (i > 0 && scale->level[i] <= scale->level[i - 1]))
            TRY(base_fail(BASE_ERR_DATA, "the levels of the scale do not rise"));
    }
out:
    return base_prefix(st, "\"scale\"");
}

static base_status read_count(const json_t *object, const char *key, uint32_t *count_p)
{
    int64_t count = 0;
    base_status st = base_json_integer(object, key, &count);

    if (st == BASE_OK && (count < 1 || count >= UINT32_MAX))
        st = base_fail(BASE_ERR_DATA, "\"%s\" is %lld", key, (long long)count);
    *count_p = (uint32_t)count;
    return st;
}

static base_status read_facts(const json_t *object, struct recsys_fit *fit)
{
    json_t *facts = NULL;
    base_status st = base_json_array(object, "facts", &facts);

    if (st == BASE_OK && json_array_size(facts) > RECSYS_MAX_FACTS)
        st = base_fail(BASE_ERR_DATA, "%zu facts", json_array_size(facts));
    for (size_t i = 0; st == BASE_OK && i < json_array_size(facts); i++)
        fit->facts[fit->fact_count++] = json_number_value(json_array_get(facts, i));
    return st;
}

/* The fit, without memory. */
static base_status read_manifest(const json_t *object, struct recsys_saved *saved)
{
    base_status st = BASE_OK;
    struct recsys_fit *fit = saved->fit;
    const char *model = NULL;
    json_t *scale = NULL;
    int64_t seed = 0;

    TRY(base_json_string(object, "model", &model));
    TRY(recsys_model_find(model, &fit->model, &saved->options));
    saved->model = base_strdup(model);
    fit->options = saved->options;
    TRY(base_json_object(object, "scale", &scale));
    TRY(read_scale(scale, &saved->scale));
    fit->scale = &saved->scale;
    TRY(read_count(object, "users", &fit->users));
    TRY(read_count(object, "items", &fit->items));
    TRY(read_float(object, "mean", &fit->mean));
    TRY(base_json_integer(object, "seed", &seed));
    fit->seed = saved->seed = (uint64_t)seed;
    TRY(read_facts(object, fit));
    fit->own = base_calloc(1, fit->model->own_size + 1);
    TRY(fit->model->reopen(fit));
    TRY(recsys_lay_out(fit));
out:
    return base_prefix(st, "\"ratings\"");
}

/* ---- tensors ---- */

/* A copy of a tensor, aligned; its length must be `count`, unless that is 0: then *count_p. */
static base_status copy_tensor(struct recsys_saved *saved, const struct store_file *file,
                               const char *name, enum store_type type, uint64_t count,
                               uint64_t *count_p, const void *memory_pp)
{
    base_status st = BASE_OK;
    const struct store_tensor *t = store_find(file, name);
    void *memory = NULL;

    if (t == NULL)
        TRY(base_fail(BASE_ERR_DATA, "there is no tensor %s", name));
    if (t->type != type || t->rank != 1 || (count > 0 && t->shape[0] != count))
        TRY(base_fail(BASE_ERR_DATA, "tensor %s has another type or shape than expected", name));
    TRY(base_tensor(t->shape[0], store_type_size(type), name, &memory));
    memcpy(memory, t->data, t->bytes);
    saved->memory[saved->memory_count++] = memory;
    *(void **)(uintptr_t)memory_pp = memory;
    if (count_p != NULL)
        *count_p = t->shape[0];
out:
    return st;
}

/* Do `count` + 1 places rise from 0 to `end`? */
static bool are_places(const uint64_t *start, uint32_t count, uint64_t end)
{
    if (start[0] != 0 || start[count] != end)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (start[i + 1] < start[i])
            return false;
    return true;
}

static base_status read_ids(struct recsys_saved *saved, const struct store_file *file,
                            const char *what, uint32_t count, struct recsys_ids *ids)
{
    base_status st = BASE_OK;
    char *starts = base_format("%s_start", what), *text = base_format("%s_text", what);
    uint64_t bytes = 0;

    ids->count = count;
    if (store_find(file, what) != NULL) {
        TRY(copy_tensor(saved, file, what, STORE_U32, count, NULL, &ids->number));
        for (uint32_t i = 1; i < count; i++)
            if (ids->number[i] <= ids->number[i - 1])
                TRY(base_fail(BASE_ERR_DATA, "the ids of tensor %s do not rise", what));
        goto out;
    }
    TRY(copy_tensor(saved, file, starts, STORE_I64, (uint64_t)count + 1, NULL, &ids->text_start));
    TRY(copy_tensor(saved, file, text, STORE_U8, 0, &bytes, &ids->text));
    if (!are_places(ids->text_start, count, bytes))
        TRY(base_fail(BASE_ERR_DATA, "%s does not say where texts begin", starts));
    for (uint32_t i = 0; i < count; i++)
        if (ids->text_start[i + 1] == ids->text_start[i] ||
            ids->text[ids->text_start[i + 1] - 1] != '\0')
            TRY(base_fail(BASE_ERR_DATA, "text %u of %s has no end", i, text));
out:
    base_free(starts);
    base_free(text);
    return st;
}

static base_status read_rated(struct recsys_saved *saved, const struct store_file *file)
{
    base_status st = BASE_OK;
    struct recsys_rows *rows = &saved->rated;

    rows->rows = saved->fit->users;
    rows->columns = saved->fit->items;
    TRY(copy_tensor(saved, file, "start", STORE_I64, (uint64_t)rows->rows + 1, NULL, &rows->start));
    TRY(copy_tensor(saved, file, "item", STORE_U32, 0, &rows->count, &rows->column));
    if (saved->scale.levels > 0)
        TRY(copy_tensor(saved, file, "code", STORE_U8, rows->count, NULL, &rows->code));
    else
        TRY(copy_tensor(saved, file, "value", STORE_F32, rows->count, NULL, &rows->value));
    if (!are_places(rows->start, rows->rows, rows->count))
        TRY(base_fail(BASE_ERR_DATA, "start does not say where users begin"));
    TRY(base_tensor(rows->columns, sizeof *saved->item_counts, "counts", &saved->item_counts));
    saved->memory[saved->memory_count++] = saved->item_counts;
    for (uint64_t k = 0; k < rows->count; k++) {
        if (rows->column[k] >= rows->columns ||
            (rows->code != NULL && rows->code[k] >= saved->scale.levels) ||
            (rows->value != NULL && !isfinite(rows->value[k])))
            TRY(base_fail(BASE_ERR_DATA, "rating %llu is of no item or of no level",
                          (unsigned long long)k));
        saved->item_counts[rows->column[k]]++;
    }
out:
    return st;
}

/* Where the ratings were, for a person and for commands that read them again. */
static void read_place(struct recsys_saved *saved, const json_t *manifest)
{
    const json_t *data = json_object_get(manifest, "data");
    const char *path = json_string_value(json_object_get(data, "path"));
    const char *name = json_string_value(json_object_get(data, "name"));

    saved->data = base_strdup(path != NULL && base_exists(path) ? path : name != NULL ? name : "");
}

base_status recsys_saved_parse(const json_t *manifest, const struct store_file *ids,
                               const struct store_file *rated, struct recsys_saved *saved)
{
    base_status st = BASE_OK;
    json_t *object = NULL;

    saved->fit = base_calloc(1, sizeof *saved->fit);
    TRY(base_json_object(manifest, "ratings", &object));
    TRY(read_manifest(object, saved));
    read_place(saved, manifest);
    TRY(base_prefix(read_ids(saved, ids, "user", saved->fit->users, &saved->users), "%s",
                    RECSYS_IDS_FILE));
    TRY(base_prefix(read_ids(saved, ids, "item", saved->fit->items, &saved->items), "%s",
                    RECSYS_IDS_FILE));
    TRY(base_prefix(read_rated(saved, rated), "%s", RECSYS_RATED_FILE));
    saved->fit->by_user = &saved->rated;
out:
    return st;
}
