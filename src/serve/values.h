/* SPDX-License-Identifier: MIT
 *
 * Numbers in JSON arrays, nested or flat, as tensors.
 */
#ifndef SERVE_VALUES_H
#define SERVE_VALUES_H

#include "base/json.h"

/* A document that may hold many of them, but not so many that they need hundreds of megabytes:
 * a value of two bytes is one of forty once it is parsed. */
base_status serve_values_parse(const char *bytes, size_t count, json_t **document_p);

/* What the document is about: the value of its "instances", "inputs" or "data", else the whole. */
const json_t *serve_values_of(const json_t *document);

/* How many there are; anything but numbers in arrays is an error. */
base_status serve_values_count(const json_t *value, size_t *count_p);
/* In order, to memory for that many. */
base_status serve_values_take(const json_t *value, float *values);

#endif
