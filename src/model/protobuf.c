/* SPDX-License-Identifier: MIT */
#include "model/protobuf.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 }; /* wire types */

static void add_varint(struct base_str *s, uint64_t value)
{
    char bytes[10];
    size_t count = 0;

    do {
        bytes[count] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        count++;
    } while (value != 0);
    base_str_append(s, bytes, count);
}

static void add_tag(struct base_str *s, int field, int type)
{
    add_varint(s, (uint64_t)field << 3 | (uint64_t)type);
}

void model_pb_int(struct base_str *s, int field, int64_t value)
{
    add_tag(s, field, VARINT);
    add_varint(s, (uint64_t)value);
}

void model_pb_float(struct base_str *s, int field, float value)
{
    uint32_t bits;
    char bytes[4];

    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(bits >> 8 * i & 0xff);
    add_tag(s, field, FIXED32);
    base_str_append(s, bytes, sizeof bytes);
}

void model_pb_packed(struct base_str *s, double value)
{
    uint64_t bits;
    char bytes[8];

    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(bits >> 8 * i & 0xff);
    base_str_append(s, bytes, sizeof bytes);
}

void model_pb_double(struct base_str *s, int field, double value)
{
    add_tag(s, field, FIXED64);
    model_pb_packed(s, value);
}

void model_pb_length(struct base_str *s, int field, uint64_t length)
{
    add_tag(s, field, LENGTH);
    add_varint(s, length);
}

void model_pb_text(struct base_str *s, int field, const char *text)
{
    model_pb_length(s, field, strlen(text));
    base_str_append(s, text, strlen(text));
}

void model_pb_message(struct base_str *s, int field, struct base_str *message)
{
    model_pb_length(s, field, message->length);
    if (message->length > 0)
        base_str_append(s, message->text, message->length);
    base_str_fini(message);
}
