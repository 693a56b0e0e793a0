/* SPDX-License-Identifier: MIT */
#include "model/about.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/table.h"

void model_about_init(struct model_about *about, const char *model, const char *kernels,
                      const struct data_info *info, json_t *settings)
{
    *about = (struct model_about){
        .model = base_strdup(model),
        .classes = info->classes,
        .labels = base_calloc((size_t)info->classes, sizeof *about->labels),
        .input = {.c = info->channels, .h = info->height, .w = info->width},
        .crop = info->crop,
        .kernels = base_strdup(kernels),
        .data = base_strdup(info->name),
        .data_names = info->names[0] != '\0' ? base_strdup(info->names) : NULL,
        .data_path = info->path != NULL ? base_strdup(info->path) : NULL,
        .format = base_strdup(info->format),
        .digest = base_strdup(info->digest),
        .test_share = info->test_share,
        .test_seed = info->test_seed,
        .settings = settings,
    };
    for (int i = 0; i < info->classes; i++)
        about->labels[i] = base_strdup(info->class_names[i]);
    if (info->table != NULL) {
        about->table = base_calloc(1, sizeof *about->table);
        data_table_copy(info->table, about->table);
        return;
    }
    for (int i = 0; i < info->channels; i++) {
        about->mean[i] = info->mean[i];
        about->deviation[i] = info->deviation[i];
    }
}

void model_about_task(struct model_about *about, const char *task, const char *model, json_t *own,
                      const struct model_source *data, json_t *settings)
{
    *about = (struct model_about){
        .task = base_strdup(task),
        .own = own,
        .model = base_strdup(model),
        .kernels = base_strdup(""),
        .data = base_strdup(data->name),
        .data_path = data->path != NULL ? base_strdup(data->path) : NULL,
        .format = base_strdup(data->format),
        .digest = base_strdup(data->digest),
        .settings = settings,
    };
}

void model_about_fini(struct model_about *about)
{
    base_free(about->task);
    json_decref(about->own);
    base_free(about->model);
    for (int i = 0; about->labels != NULL && i < about->classes; i++)
        base_free(about->labels[i]);
    base_free(about->labels);
    base_free(about->kernels);
    base_free(about->data);
    base_free(about->data_path);
    base_free(about->data_names);
    base_free(about->format);
    base_free(about->digest);
    if (about->table != NULL)
        data_table_fini(about->table);
    base_free(about->table);
    json_decref(about->settings);
    *about = (struct model_about){0};
}

const char *model_about_place(const struct model_about *about)
{
    char *found = realpath(about->data, NULL);
    const char *path = about->data_path;
    bool by_name =
        path == NULL || (found != NULL && (strcmp(found, path) == 0 || !base_exists(path)));

    free(found);
    return by_name ? about->data : path;
}

bool model_about_is_regression(const struct model_about *about)
{
    return about->table != NULL && about->table->target.kind == DATA_NUMBER;
}

double model_about_number(const struct model_about *about, float output)
{
    const struct data_column *target = &about->table->target;

    return (double)output * target->deviation + target->mean;
}

/* Adds how inputs are made of pixels, or of a table's row. */
static void add_normalisation(json_t *object, const struct model_about *about)
{
    json_t *mean, *deviation;

    if (about->table != NULL) {
        json_object_set_new(object, "table", model_table_to_json(about->table));
        return;
    }
    mean = json_array();
    deviation = json_array();
    for (int i = 0; i < about->input.c; i++) {
        json_array_append_new(mean, json_real((double)about->mean[i]));
        json_array_append_new(deviation, json_real((double)about->deviation[i]));
    }
    if (about->crop != DATA_CROP_NONE)
        json_object_set_new(object, "crop", json_string(data_crop_names[about->crop]));
    json_object_set_new(object, "mean", mean);
    json_object_set_new(object, "deviation", deviation);
}

static json_t *data_to_json(const struct model_about *about)
{
    json_t *data =
        json_pack("{s:s, s:s, s:s, s:s*, s:s*}", "name", about->data, "format", about->format,
                  "digest", about->digest, "names", about->data_names, "path", about->data_path);

    if (about->test_share > 0)
        json_object_update_new(data, json_pack("{s:f, s:I}", "test_share", about->test_share,
                                               "test_seed", (json_int_t)about->test_seed));
    return data;
}

char *model_about_text(const struct model_about *about)
{
    struct base_str text = {0};

    base_str_add(&text, "input %dx%dx%d\nclasses %d\n", about->input.c, about->input.h,
                 about->input.w, about->classes);
    for (const char *line = about->model, *next; *line != '\0'; line = next) {
        const char *word = line + strspn(line, " \t");
        size_t length = strcspn(word, " \t\r\n#");

        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (!(length == 5 && strncmp(word, "input", length) == 0) &&
            !(length == 7 && strncmp(word, "classes", length) == 0))
            base_str_append(&text, line, (size_t)(next - line));
    }
    return base_str_take(&text);
}

json_t *model_about_to_json(const struct model_about *about)
{
    json_t *labels, *object;

    if (about->task != NULL)
        return json_pack("{s:s, s:s, s:O, s:s, s:o, s:O}", "task", about->task, "model",
                         about->model, about->task, about->own, "kernels", about->kernels, "data",
                         data_to_json(about), "settings", about->settings);
    labels = json_array();
    for (int i = 0; i < about->classes; i++)
        json_array_append_new(labels, json_string(about->labels[i]));
    object =
        json_pack("{s:s, s:i, s:o, s:[i,i,i]}", "model", about->model, "classes", about->classes,
                  "labels", labels, "input", about->input.c, about->input.h, about->input.w);
    add_normalisation(object, about);
    json_object_set_new(object, "kernels", json_string(about->kernels));
    json_object_set_new(object, "data", data_to_json(about));
    json_object_set(object, "settings", about->settings);
    return object;
}

/* ---- reading ---- */

static base_status read_text(const json_t *object, const char *key, char **text_p)
{
    const char *text = NULL;
    base_status st = base_json_string(object, key, &text);

    if (st == BASE_OK)
        *text_p = base_strdup(text);
    return st;
}

/* Reads a list of exactly `count` entries; `of` says in the message what there are `count` of. */
static base_status read_list(const json_t *object, const char *key, int count, const char *of,
                             json_t **list_p)
{
    base_status st = base_json_array(object, key, list_p);

    if (st == BASE_OK && json_array_size(*list_p) != (size_t)count)
        st = base_fail(BASE_ERR_DATA, "\"%s\" has %zu entries, but there are %d %s", key,
                       json_array_size(*list_p), count, of);
    return st;
}

static base_status read_labels(const json_t *object, struct model_about *about)
{
    base_status st = BASE_OK;
    json_t *list = NULL;
    int64_t classes = 0;

    TRY(base_json_integer(object, "classes", &classes));
    if (classes < 1 || classes > DATA_MAX_CLASSES)
        TRY(base_fail(BASE_ERR_DATA, "\"classes\" is %lld, 1 to %d expected", (long long)classes,
                      DATA_MAX_CLASSES));
    TRY(read_list(object, "labels", (int)classes, "classes", &list));
    about->classes = (int)classes;
    about->labels = base_calloc((size_t)classes, sizeof *about->labels);
    for (int i = 0; i < about->classes; i++) {
        const char *label = json_string_value(json_array_get(list, (size_t)i));

        if (label == NULL)
            TRY(base_fail(BASE_ERR_DATA, "entry %d of \"labels\" is not a string", i));
        about->labels[i] = base_strdup(label);
    }
out:
    return st;
}

static base_status read_input(const json_t *object, bool table, struct nn_shape *input_p)
{
    const int most[] = {table ? DATA_MAX_FEATURES : DATA_MAX_CHANNELS, table ? 1 : DATA_MAX_SIDE,
                        table ? 1 : DATA_MAX_SIDE};
    int sizes[3];
    json_t *list = NULL;
    base_status st = read_list(object, "input", 3, "dimensions", &list);

    for (size_t i = 0; st == BASE_OK && i < 3; i++) {
        json_int_t size = json_integer_value(json_array_get(list, i));

        if (size < 1 || size > most[i])
            st = base_fail(BASE_ERR_DATA, "entry %zu of \"input\" is not a number from 1 to %d", i,
                           most[i]);
        sizes[i] = (int)size;
    }
    if (st == BASE_OK)
        *input_p = (struct nn_shape){.c = sizes[0], .h = sizes[1], .w = sizes[2]};
    return st;
}

/* Without "crop" images are scaled whole. */
static base_status read_crop(const json_t *object, enum data_crop *crop_p)
{
    const char *name = NULL;
    base_status st = BASE_OK;

    *crop_p = DATA_CROP_NONE;
    if (json_object_get(object, "crop") == NULL)
        goto out;
    TRY(base_json_string(object, "crop", &name));
    if (strcmp(name, data_crop_names[DATA_CROP_CENTRE]) == 0)
        *crop_p = DATA_CROP_CENTRE;
    else if (strcmp(name, data_crop_names[DATA_CROP_NONE]) != 0)
        TRY(base_fail(BASE_ERR_DATA, "\"crop\" is '%s', none or centre expected", name));
out:
    return st;
}

static base_status read_numbers(const json_t *object, const char *key, int channels,
                                float numbers[DATA_MAX_CHANNELS])
{
    json_t *list = NULL;
    base_status st = read_list(object, key, channels, "channels", &list);

    for (int i = 0; st == BASE_OK && i < channels; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);

        numbers[i] = (float)json_number_value(entry);
        if (!json_is_number(entry) || !isfinite(numbers[i]))
            st = base_fail(BASE_ERR_DATA, "entry %d of \"%s\" is not a number that a float holds",
                           i, key);
    }
    return st;
}

static base_status read_normalisation(const json_t *object, struct model_about *about)
{
    base_status st = BASE_OK;
    const json_t *table = json_object_get(object, "table");

    if (table != NULL) {
        about->table = base_calloc(1, sizeof *about->table);
        TRY(base_prefix(model_table_from_json(table, about->labels, about->classes, about->table),
                        "\"table\""));
        if (about->table->features != about->input.c)
            TRY(base_fail(BASE_ERR_DATA, "\"table\" has %d features, but \"input\" has %d",
                          about->table->features, about->input.c));
        goto out;
    }
    TRY(read_numbers(object, "mean", about->input.c, about->mean));
    TRY(read_numbers(object, "deviation", about->input.c, about->deviation));
    for (int i = 0; i < about->input.c; i++)
        if (about->deviation[i] <= 0)
            TRY(base_fail(BASE_ERR_DATA,
                          "entry %d of \"deviation\" is %g; pixels are divided by it", i,
                          (double)about->deviation[i]));
out:
    return st;
}

static base_status read_data(const json_t *data, struct model_about *about)
{
    base_status st = BASE_OK;
    int64_t seed = 0;

    TRY(read_text(data, "name", &about->data));
    TRY(read_text(data, "format", &about->format));
    TRY(read_text(data, "digest", &about->digest));
    /* Runs of earlier versions have neither of these. */
    if (json_object_get(data, "names") != NULL)
        TRY(read_text(data, "names", &about->data_names));
    if (json_object_get(data, "path") != NULL)
        TRY(read_text(data, "path", &about->data_path));
    if (json_object_get(data, "test_share") != NULL) {
        TRY(base_json_real(data, "test_share", &about->test_share));
        TRY(base_json_integer(data, "test_seed", &seed));
        about->test_seed = (uint64_t)seed;
        if (!(about->test_share >= 0 && about->test_share <= 0.9))
            TRY(base_fail(BASE_ERR_DATA, "\"test_share\" is %g, 0 to 0.9 expected",
                          about->test_share));
    }
out:
    return base_prefix(st, "\"data\"");
}

static base_status read_network(const json_t *object, struct model_about *about)
{
    base_status st = BASE_OK;

    TRY(read_labels(object, about));
    TRY(read_input(object, json_object_get(object, "table") != NULL, &about->input));
    TRY(read_crop(object, &about->crop));
    TRY(read_normalisation(object, about));
out:
    return st;
}

static base_status read_task(const json_t *object, struct model_about *about)
{
    base_status st = BASE_OK;
    json_t *own = NULL;

    TRY(read_text(object, "task", &about->task));
    TRY(base_json_object(object, about->task, &own));
    about->own = json_incref(own);
out:
    return st;
}

base_status model_about_from_json(const json_t *object, struct model_about *about_p)
{
    base_status st = BASE_OK;
    struct model_about about = {0};
    json_t *data = NULL, *settings = NULL;

    *about_p = (struct model_about){0};
    if (json_object_get(object, "task") != NULL)
        TRY(read_task(object, &about));
    else
        TRY(read_network(object, &about));
    TRY(read_text(object, "model", &about.model));
    TRY(read_text(object, "kernels", &about.kernels));
    TRY(base_json_object(object, "data", &data));
    TRY(read_data(data, &about));
    TRY(base_json_object(object, "settings", &settings));
    about.settings = json_incref(settings);
    *about_p = about;
    about = (struct model_about){0};
out:
    model_about_fini(&about);
    return st;
}
