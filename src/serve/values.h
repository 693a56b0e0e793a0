/* SPDX-License-Identifier: MIT
 *
 * Numbers in JSON arrays, nested or flat, as tensors.
 */
#ifndef SERVE_VALUES_H
#define SERVE_VALUES_H

#include "base/json.h"

/* How many there are; anything but numbers in arrays is an error. */
base_status serve_values_count(const json_t *value, size_t *count_p);
/* In order, to memory for that many. */
base_status serve_values_take(const json_t *value, float *values);

#endif
