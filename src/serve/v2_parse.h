/* SPDX-License-Identifier: MIT
 *
 * A request of the Open Inference Protocol: {"id", "inputs":[{"name","shape","datatype","data"}]}.
 * Floating-point and integer values are what the network takes; UINT8 values are pixels, which are
 * normalised as in training.
 */
#ifndef SERVE_V2_PARSE_H
#define SERVE_V2_PARSE_H

#include "serve/handler.h"

/* The caller owns the id (a string, json_decref; NULL: there is none) and the samples' memory
 * (base_free), also after a failure. */
base_status serve_v2_parse(const struct model_about *about, const char *bytes, size_t count,
                           json_t **id_p, struct serve_samples *samples_p);

#endif
