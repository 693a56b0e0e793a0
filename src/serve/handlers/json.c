/* SPDX-License-Identifier: MIT
 *
 * Numbers as JSON: an array, nested or flat, that holds the values (C,H,W) of one sample or of
 * several, as the network takes them; or an object with such an array under "instances", "inputs"
 * or "data".
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "serve/handler.h"

enum { MAX_DEPTH = 8 };

static bool json_takes(const struct serve_body *body)
{
    const char *bytes = body->bytes;
    size_t at = 0;

    if (strncasecmp(body->type, "application/json", 16) == 0)
        return true;
    while (at < body->count && strchr(" \t\r\n", bytes[at]) != NULL && bytes[at] != '\0')
        at++;
    return at < body->count && (bytes[at] == '[' || bytes[at] == '{');
}

static base_status count_values(const json_t *value, int depth, size_t *count)
{
    base_status st = BASE_OK;
    size_t i;
    json_t *item;

    if (json_is_number(value)) {
        *count += 1;
    } else if (json_is_array(value) && depth < MAX_DEPTH) {
        json_array_foreach(value, i, item) TRY(count_values(item, depth + 1, count));
    } else {
        TRY(base_fail(BASE_ERR_DATA, "arrays of numbers expected, nested %d deep at most",
                      MAX_DEPTH));
    }
out:
    return st;
}

static base_status take_values(const json_t *value, float **at)
{
    base_status st = BASE_OK;
    size_t i;
    json_t *item;

    json_array_foreach(value, i, item) TRY(take_values(item, at));
    if (json_is_number(value)) {
        float number = (float)json_number_value(value);

        if (!isfinite(number))
            TRY(base_fail(BASE_ERR_DATA, "a number is too large for 32 bits"));
        *(*at)++ = number;
    }
out:
    return st;
}

static const json_t *values_of(const json_t *document)
{
    static const char *const keys[] = {"instances", "inputs", "data"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(document, keys[i]) != NULL)
            return json_object_get(document, keys[i]);
    return document;
}

static base_status json_read(const struct model_about *about, const struct serve_body *body,
                             struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    json_t *document = NULL;
    const json_t *values;
    size_t count = 0;
    float *at;

    TRY(base_json_parse(body->bytes, body->count, &document));
    values = values_of(document);
    TRY(count_values(values, 0, &count));
    TRY(serve_samples_new(about, count, samples_p));
    samples_p->list |= values == json_object_get(document, "instances");
    at = samples_p->x;
    TRY(take_values(values, &at));
out:
    json_decref(document);
    return st;
}

const struct serve_handler serve_handler_json = {
    .name = "json",
    .help = "JSON arrays of numbers",
    .takes = json_takes,
    .read = json_read,
};
