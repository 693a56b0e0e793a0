/* SPDX-License-Identifier: MIT
 *
 * Numbers as JSON: an array, nested or flat, that holds the values (C,H,W) of one sample or of
 * several, as the network takes them; or an object with such an array under "instances", "inputs"
 * or "data".
 */
#include "base/json.h"
#include "serve/handler.h"
#include "serve/values.h"

static bool json_takes(const struct model_about *about, const struct serve_body *body)
{
    return about->table == NULL && serve_is_json(body);
}

static base_status json_read(const struct model_about *about, const struct serve_body *body,
                             struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    json_t *document = NULL;
    const json_t *values;
    size_t count;

    TRY(serve_values_parse(body->bytes, body->count, &document));
    values = serve_values_of(document);
    TRY(serve_values_count(values, &count));
    TRY(serve_samples_new(about, count, samples_p));
    samples_p->list |= values == json_object_get(document, "instances");
    TRY(serve_values_take(values, samples_p->x));
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
