/* SPDX-License-Identifier: MIT */
#include "train/wire_block.h"

#include <math.h>
#include <string.h>

#include "base/cursor.h"
#include "coll/kernels.h"

enum { MOST_VALUES = 256 };

/* A block whose largest value is below this is all residual: 1/scale stays finite. */
static const float TINY = 0x1p-100f;

static int most_of(const struct train_wire_blocks *form)
{
    return (1 << (form->bits - 1)) - 1;
}

static size_t bytes_of(const struct train_wire_blocks *form, size_t values)
{
    return (values * (size_t)form->bits + 7) / 8;
}

size_t train_wire_blocks_bound(const struct train_wire_blocks *form, size_t count)
{
    size_t blocks = count / form->values, rest = count % form->values;

    return blocks * (sizeof(uint16_t) + bytes_of(form, form->values)) +
           (rest > 0 ? sizeof(uint16_t) + bytes_of(form, rest) : 0);
}

/* The largest magnitude by its bits: those of NaN are above all others. */
static float largest(const float *v, size_t count)
{
    uint32_t most = 0;
    float result;

    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, v + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    memcpy(&result, &most, sizeof result);
    return result;
}

/* Integers of the values, and what these leave. */
static void quantise(float *v, size_t count, float scale, int most, int8_t *integers)
{
    const float ROUND = 0x1.8p23f; /* added and taken away, it leaves an integer */
    float inverse = 1 / scale, limit = (float)most;

    for (size_t i = 0; i < count; i++) {
        float q = v[i] * inverse;

        q = q > limit ? limit : q < -limit ? -limit : q;
        q = (q + ROUND) - ROUND;
        integers[i] = (int8_t)q;
        v[i] -= q * scale;
    }
}

static void pack(const struct train_wire_blocks *form, const int8_t *integers, size_t count,
                 uint8_t *bytes)
{
    if (form->bits == 8) {
        memcpy(bytes, integers, count);
        return;
    }
    for (size_t i = 0; i < count; i += 2) { /* the one after an odd end is 0 */
        unsigned high = i + 1 < count ? (unsigned)integers[i + 1] & 15 : 0;

        bytes[i / 2] = (uint8_t)(((unsigned)integers[i] & 15) | high << 4);
    }
}

static void unpack(const struct train_wire_blocks *form, const uint8_t *bytes, size_t count,
                   int8_t *integers)
{
    if (form->bits == 8) {
        memcpy(integers, bytes, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int nibble = bytes[i / 2] >> (i % 2 * 4) & 15;

        integers[i] = (int8_t)((nibble ^ 8) - 8);
    }
}

static size_t encode_block(const struct train_wire_blocks *form, float *v, size_t count,
                           uint8_t *bytes)
{
    int8_t integers[MOST_VALUES] = {0};
    float most = largest(v, count), scale = most / (float)most_of(form);
    uint16_t packed;

    if (most < TINY)
        scale = 0;
    coll_kernels()->pack(1, &scale, &packed);
    coll_kernels()->unpack(1, &packed, &scale);
    memcpy(bytes, &packed, sizeof packed);
    if (scale > 0 && isfinite(scale))
        quantise(v, count, scale, most_of(form), integers);
    pack(form, integers, count, bytes + sizeof packed);
    return sizeof packed + bytes_of(form, count);
}

size_t train_wire_blocks_encode(const struct train_wire_blocks *form, const float *x,
                                float *residual, size_t count, uint8_t *bytes)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++)
        residual[i] += x[i];
    for (size_t from = 0; from < count; from += form->values)
        at += encode_block(form, residual + from,
                           count - from < form->values ? count - from : form->values, bytes + at);
    return at;
}

static base_status decode_block(const struct train_wire_blocks *form, struct base_cursor *in,
                                float *y, size_t count)
{
    base_status st = BASE_OK;
    int8_t integers[MOST_VALUES];
    const uint8_t *bytes;
    uint16_t packed;
    float scale;
    int least = 0;

    TRY(base_cursor_le16(in, &packed));
    coll_kernels()->unpack(1, &packed, &scale);
    if (signbit(scale) || !isfinite(scale * (float)most_of(form)))
        TRY(base_fail(BASE_ERR_DATA, "a block's scale is %g", (double)scale));
    TRY(base_cursor_skip(in, bytes_of(form, count), &bytes));
    unpack(form, bytes, count, integers);
    for (size_t i = 0; i < count; i++) {
        least = integers[i] < least ? integers[i] : least;
        y[i] = (float)integers[i] * scale;
    }
    if (least < -most_of(form))
        TRY(base_fail(BASE_ERR_DATA, "an integer of a block is %d", least));
out:
    return st;
}

base_status train_wire_blocks_decode(const struct train_wire_blocks *form, const uint8_t *bytes,
                                     size_t length, float *y, size_t count)
{
    base_status st = BASE_OK;
    struct base_cursor in = base_cursor_of(bytes, length);

    if (length != train_wire_blocks_bound(form, count))
        TRY(base_fail(BASE_ERR_DATA, "%zu bytes for %zu values", length, count));
    for (size_t from = 0; from < count; from += form->values)
        TRY(decode_block(form, &in, y + from,
                         count - from < form->values ? count - from : form->values));
out:
    return st;
}
