/* SPDX-License-Identifier: MIT
 *
 * Protocol buffers, as far as writing them goes: fields are appended to a growing string. A message
 * inside another is built first, because its length stands before it; where the bytes are many and
 * come later, model_pb_length says only how many will follow.
 */
#ifndef MODEL_PROTOBUF_H
#define MODEL_PROTOBUF_H

#include <stdint.h>

#include "base/str.h"

void model_pb_int(struct base_str *s, int field, int64_t value);
void model_pb_float(struct base_str *s, int field, float value);
void model_pb_double(struct base_str *s, int field, double value);
/* A number of a packed list of doubles, whose tag and length model_pb_length has written. */
void model_pb_packed(struct base_str *s, double value);
void model_pb_text(struct base_str *s, int field, const char *text);
/* Takes over `message`, which is empty again. */
void model_pb_message(struct base_str *s, int field, struct base_str *message);
/* The field's tag and length; the caller lets exactly `length` bytes follow. */
void model_pb_length(struct base_str *s, int field, uint64_t length);

#endif
