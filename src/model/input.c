/* SPDX-License-Identifier: MIT */
#include "model/input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/image.h"

static base_status needs_images(const struct model_about *about)
{
    return about->table == NULL ? BASE_OK
                                : base_fail(BASE_ERR_MODEL, "the model takes rows of a table, "
                                                            "not images");
}

base_status model_input_image(const struct model_about *about, const void *bytes, size_t count,
                              float *x)
{
    base_status st = BASE_OK;
    struct nn_shape in = about->input;
    size_t plane = (size_t)in.h * (size_t)in.w;
    struct data_image image = {0};
    uint8_t *pixels = NULL;

    TRY(needs_images(about));
    TRY(base_tensor(plane, (size_t)in.c, "an image", &pixels));
    TRY(data_image_decode(bytes, count, &image));
    data_image_crop(&image, about->crop, in.h, in.w, NULL);
    data_image_fit(&image, in.c, in.h, in.w, pixels);
    for (int c = 0; c < in.c; c++) {
        float table[256];

        data_level_table(about->mean[c], about->deviation[c], table);
        for (size_t i = 0; i < plane; i++)
            x[(size_t)c * plane + i] = table[pixels[(size_t)c * plane + i]];
    }
out:
    data_image_fini(&image);
    base_free(pixels);
    return st;
}

/* ---- rows of a table ---- */

static base_status unknown_column(const struct data_table *table, const char *name)
{
    const char **names = base_calloc((size_t)table->column_count, sizeof *names);
    base_status st;

    for (int i = 0; i < table->column_count; i++)
        names[i] = table->columns[i].name;
    st = base_unknown(BASE_ERR_DATA, "column", name, names, (size_t)table->column_count);
    base_free(names);
    return st;
}

static base_status needs_table(const struct model_about *about)
{
    return about->table != NULL ? BASE_OK
                                : base_fail(BASE_ERR_MODEL,
                                            "the model takes images of %dx%dx%d, "
                                            "not rows of a table",
                                            about->input.c, about->input.h, about->input.w);
}

base_status model_input_row(const struct model_about *about, const struct model_field *fields,
                            size_t count, float *x, int *unknown_p)
{
    base_status st = BASE_OK;
    const struct data_table *table = about->table;
    double *cells = NULL;
    bool *given = NULL;
    int unknown = 0;

    TRY(needs_table(about));
    cells = base_calloc((size_t)table->column_count, sizeof *cells);
    given = base_calloc((size_t)table->column_count, sizeof *given);
    for (size_t i = 0; i < count; i++) {
        int at = data_table_find(table, fields[i].column);

        if (at < 0 && strcmp(fields[i].column, table->target.name) == 0)
            continue;
        if (at < 0)
            TRY(unknown_column(table, fields[i].column));
        if (given[at])
            TRY(base_fail(BASE_ERR_DATA, "column '%s' is there twice", fields[i].column));
        given[at] = true;
        TRY(data_column_cell(&table->columns[at], fields[i].text, &cells[at]));
        unknown += cells[at] < 0 && table->columns[at].kind == DATA_CATEGORY;
    }
    for (int i = 0; i < table->column_count; i++)
        if (!given[i])
            TRY(base_fail(BASE_ERR_DATA,
                          "column '%s' is missing; where its value is not known, leave it empty",
                          table->columns[i].name));
    data_table_features(table, cells, x);
    if (unknown_p != NULL)
        *unknown_p = unknown;
out:
    base_free(cells);
    base_free(given);
    return st;
}

/* The text that a table would have for a JSON value; base_free. */
static base_status text_of(const char *column, const json_t *value, char **text_p)
{
    *text_p = NULL;
    if (json_is_string(value))
        *text_p = base_strdup(json_string_value(value));
    else if (json_is_integer(value))
        *text_p = base_format("%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        *text_p = base_format("%.17g", json_real_value(value));
    else if (json_is_boolean(value))
        *text_p = base_strdup(json_is_true(value) ? "true" : "false");
    else if (json_is_null(value))
        *text_p = base_strdup("");
    else
        return base_fail(BASE_ERR_DATA, "column '%s' takes a number, a string or null, not a list",
                         column);
    return BASE_OK;
}

base_status model_input_json(const struct model_about *about, const json_t *row, float *x,
                             int *unknown_p)
{
    base_status st = BASE_OK;
    struct model_field *fields = NULL;
    char **texts = NULL;
    size_t size = json_is_object(row) ? json_object_size(row) : json_array_size(row), count = 0;
    const char *key;
    json_t *value;

    TRY(needs_table(about));
    if (!json_is_object(row) && !json_is_array(row))
        TRY(base_fail(BASE_ERR_DATA, "a row is a JSON object of fields by column, or an array of "
                                     "all of them in order"));
    if (json_is_array(row) && size != (size_t)about->table->column_count)
        TRY(base_fail(BASE_ERR_DATA, "a row of %zu fields; the model takes %d", size,
                      about->table->column_count));
    fields = base_calloc(size, sizeof *fields);
    texts = base_calloc(size, sizeof *texts);
    if (json_is_object(row)) {
        json_object_foreach((json_t *)(uintptr_t)row, key, value)
        {
            TRY(text_of(key, value, &texts[count]));
            fields[count] = (struct model_field){key, texts[count]};
            count++;
        }
    }
    for (; json_is_array(row) && count < size; count++) {
        const char *name = about->table->columns[count].name;

        TRY(text_of(name, json_array_get(row, count), &texts[count]));
        fields[count] = (struct model_field){name, texts[count]};
    }
    TRY(model_input_row(about, fields, count, x, unknown_p));
out:
    for (size_t i = 0; texts != NULL && i < size; i++)
        base_free(texts[i]);
    base_free(texts);
    base_free(fields);
    return st;
}
