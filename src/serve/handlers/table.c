/* SPDX-License-Identifier: MIT
 *
 * Rows of a table as JSON, for models that were trained on one: an object of fields by column, or
 * an array of them in the order of the training's columns; or an array of such rows; or an object
 * with a row or rows under "instances", "inputs" or "data". A field is never an array or object, so
 * a column of one of these names is told from that.
 */
#include "model/input.h"
#include "serve/handler.h"
#include "serve/values.h"

static bool table_is_container(const json_t *value)
{
    return json_is_array(value) || json_is_object(value);
}

static bool table_takes(const struct model_about *about, const struct serve_body *body)
{
    return about->table != NULL && serve_is_json(body);
}

static base_status table_read_rows(const struct model_about *about, const json_t *rows,
                                   struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    size_t i, each = nn_shape_values(about->input);
    json_t *row;

    TRY(serve_samples_new(about, json_array_size(rows) * each, samples_p));
    samples_p->list = true;
    json_array_foreach(rows, i, row) TRY(
        base_prefix(model_input_json(about, row, samples_p->x + i * each, NULL), "row %zu", i + 1));
out:
    return st;
}

static base_status table_read(const struct model_about *about, const struct serve_body *body,
                              struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    json_t *document = NULL;
    const json_t *rows;

    TRY(serve_values_parse(body->bytes, body->count, &document));
    rows = serve_values_of(document);
    if (!table_is_container(rows))
        rows = document;
    if (json_is_array(rows) && table_is_container(json_array_get(rows, 0))) {
        TRY(table_read_rows(about, rows, samples_p));
    } else {
        TRY(serve_samples_new(about, nn_shape_values(about->input), samples_p));
        TRY(model_input_json(about, rows, samples_p->x, NULL));
    }
out:
    json_decref(document);
    return st;
}

const struct serve_handler serve_handler_table = {
    .name = "table",
    .help = "for a model of tables JSON rows",
    .takes = table_takes,
    .read = table_read,
};
