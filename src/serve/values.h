/* SPDX-License-Identifier: MIT
 *
 * Numbers in JSON arrays, nested or flat, as tensors.
 */
#ifndef SERVE_VALUES_H
#define SERVE_VALUES_H

#include "base/json.h"

/* Parses a document. Its number of values is limited, because a value of two bytes takes forty once
 * it is parsed: without a limit a small body would take hundreds of megabytes. */
base_status serve_values_parse(const char *bytes, size_t count, json_t **document_p);

/* The part with the numbers: the value of "instances", "inputs" or "data", else the whole document.
 */
const json_t *serve_values_of(const json_t *document);

/* Counts the numbers; anything but numbers in arrays is an error. */
base_status serve_values_count(const json_t *value, size_t *count_p);
/* Copies the numbers in order into `values`, which has room for all. */
base_status serve_values_take(const json_t *value, float *values);

#endif
