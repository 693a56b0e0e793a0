/* SPDX-License-Identifier: MIT */
#include "serve/v2_parse.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/image.h"
#include "serve/values.h"

/* Checks that the shape is [n, C, H, W] or [n, C*H*W] and has `values` values. */
static base_status check_shape(const json_t *shape, struct nn_shape in, size_t values)
{
    const long long wants[] = {in.c, in.h, in.w};
    size_t rank = json_array_size(shape), each = nn_shape_values(in);
    bool fits = rank == 2 || rank == 4;

    for (size_t i = 1; fits && i < rank; i++)
        fits = json_integer_value(json_array_get(shape, i)) ==
               (rank == 2 ? (long long)each : wants[i - 1]);
    fits = fits && json_integer_value(json_array_get(shape, 0)) == (long long)(values / each) &&
           values % each == 0;
    if (fits)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA,
                     "the input's shape and data do not fit: [n, %d, %d, %d] or [n, %zu] and as "
                     "many values expected",
                     in.c, in.h, in.w, each);
}

static base_status normalise_pixels(const struct model_about *about, struct serve_samples *samples)
{
    struct nn_shape in = about->input;
    size_t plane = (size_t)in.h * (size_t)in.w, total = (size_t)samples->n * nn_shape_values(in);
    float tables[DATA_MAX_CHANNELS][256];

    if (about->table != NULL)
        return base_fail(BASE_ERR_DATA, "the model takes rows of a table, as FP32; inputs of type "
                                        "UINT8 are pixels");
    for (int c = 0; c < in.c; c++)
        data_level_table(about->mean[c], about->deviation[c], tables[c]);
    for (size_t i = 0; i < total; i++) {
        float value = samples->x[i];

        if (!(value >= 0 && value <= 255) || value != floorf(value))
            return base_fail(BASE_ERR_DATA, "value %zu of an input of type UINT8 is none", i);
        samples->x[i] = tables[i / plane % (size_t)in.c][(int)value];
    }
    return BASE_OK;
}

static base_status check_type(const char *type)
{
    static const char *const types[] = {"FP32",  "FP64",  "UINT8",  "INT8",  "INT16",
                                        "INT32", "INT64", "UINT16", "UINT32"};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return BASE_OK;
    return base_fail(BASE_ERR_DATA, "inputs of type %s are not taken; FP32 and UINT8 (pixels) are",
                     type);
}

base_status serve_v2_parse(const struct model_about *about, const char *bytes, size_t count,
                           json_t **id_p, struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    json_t *document = NULL, *inputs, *input, *shape, *data;
    const char *type;

    *id_p = NULL;
    TRY(base_prefix(serve_values_parse(bytes, count, &document), "the body"));
    if (json_is_string(json_object_get(document, "id")))
        *id_p = json_incref(json_object_get(document, "id"));
    TRY(base_json_array(document, "inputs", &inputs));
    if (json_array_size(inputs) != 1)
        TRY(base_fail(BASE_ERR_DATA, "the model has one input, the request has %zu",
                      json_array_size(inputs)));
    input = json_array_get(inputs, 0);
    TRY(base_json_string(input, "datatype", &type));
    TRY(base_json_array(input, "shape", &shape));
    TRY(base_json_array(input, "data", &data));
    TRY(check_type(type));
    TRY(serve_values_count(data, &count));
    TRY(check_shape(shape, about->input, count));
    TRY(serve_samples_new(about, count, samples_p));
    TRY(serve_values_take(data, samples_p->x));
    if (strcmp(type, "UINT8") == 0)
        TRY(normalise_pixels(about, samples_p));
out:
    json_decref(document);
    return st;
}
