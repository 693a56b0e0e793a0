/* SPDX-License-Identifier: MIT
 *
 * Glue over jansson: parse with duplicates rejected, typed look-ups that name the missing key.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

base_status base_json_parse(const char *text, size_t count, json_t **value_p);
base_status base_json_load(const char *path, size_t limit, json_t **value_p);

base_status base_json_string(const json_t *object, const char *key, const char **text_p);
base_status base_json_integer(const json_t *object, const char *key, int64_t *number_p);
/* An integer of min … max. */
base_status base_json_bounded(const json_t *object, const char *key, int64_t min, int64_t max,
                              int64_t *number_p);
base_status base_json_flag(const json_t *object, const char *key, bool *flag_p);
base_status base_json_real(const json_t *object, const char *key, double *number_p);
base_status base_json_object(const json_t *object, const char *key, json_t **object_p);
base_status base_json_array(const json_t *object, const char *key, json_t **array_p);

/* A real that is null in JSON when it is not finite. */
json_t *base_json_number(double number);

/* JSON text is UTF-8; file names and bytes quoted in messages need not be. base_json_text turns
 * what is not ASCII into '?' in a text that is not UTF-8, and never fails. */
bool base_is_utf8(const char *text);
json_t *base_json_text(const char *text);

/* Prints `value` and a newline on stdout, flushed. */
base_status base_json_print(const json_t *value);

#endif
