/* SPDX-License-Identifier: MIT */
#include "serve/values.h"

#include <math.h>

enum { MAX_DEPTH = 8, MAX_ITEMS = 1 << 20 };

base_status serve_values_parse(const char *bytes, size_t count, json_t **document_p)
{
    size_t items = 1;

    *document_p = NULL;
    for (size_t i = 0; i < count; i++) /* one of these precedes every value but the first */
        items += bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{';
    if (items > MAX_ITEMS)
        return base_fail(BASE_ERR_DATA,
                         "more than %d values as JSON; so many are better sent as float32 values, "
                         "of type application/octet-stream",
                         MAX_ITEMS);
    return base_json_parse(bytes, count, document_p);
}

const json_t *serve_values_of(const json_t *document)
{
    static const char *const keys[] = {"instances", "inputs", "data"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(document, keys[i]) != NULL)
            return json_object_get(document, keys[i]);
    return document;
}

static base_status count_in(const json_t *value, int depth, size_t *count)
{
    base_status st = BASE_OK;
    size_t i;
    json_t *item;

    if (json_is_number(value)) {
        *count += 1;
    } else if (json_is_array(value) && depth < MAX_DEPTH) {
        json_array_foreach(value, i, item) TRY(count_in(item, depth + 1, count));
    } else {
        TRY(base_fail(BASE_ERR_DATA, "arrays of numbers expected, nested %d deep at most",
                      MAX_DEPTH));
    }
out:
    return st;
}

base_status serve_values_count(const json_t *value, size_t *count_p)
{
    *count_p = 0;
    return count_in(value, 0, count_p);
}

static base_status take_from(const json_t *value, float **at)
{
    base_status st = BASE_OK;
    size_t i;
    json_t *item;

    json_array_foreach(value, i, item) TRY(take_from(item, at));
    if (json_is_number(value)) {
        float number = (float)json_number_value(value);

        if (!isfinite(number))
            TRY(base_fail(BASE_ERR_DATA, "a number is too large for 32 bits"));
        *(*at)++ = number;
    }
out:
    return st;
}

base_status serve_values_take(const json_t *value, float *values)
{
    return take_from(value, &values);
}
