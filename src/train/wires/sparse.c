/* SPDX-License-Identifier: MIT
 *
 * Floats as they are, without runs of zeros: for gradients of embeddings, of which a batch touches
 * few rows. A message is runs until all values are there:
 *
 *   le32   zeros that come first, n
 *   le32   values that follow, m
 *   fp32   m values, little-endian
 *
 * A few zeros between two values take less room than a run and go as values. Minus zero is a value,
 * so every bit arrives.
 */
#include <math.h>
#include <string.h>

#include "base/cursor.h"
#include "train/wire.h"

enum { RUN = 2 * sizeof(uint32_t), FEW = RUN / sizeof(float) }; /* zeros that a run would cost */

/* A run that saves anything leaves out more than its own bytes; the first need not. One is cut
 * where its number would not fit. */
static size_t sparse_bound(const void *options, size_t count)
{
    (void)options;
    return count * sizeof(float) + RUN * (1 + 2 * (count / UINT32_MAX));
}

static bool sparse_is_zero(const float *x)
{
    uint32_t bits;

    memcpy(&bits, x, sizeof bits);
    return bits == 0;
}

/* Zeros at the beginning of x (count): most of them are looked at eight at a time. */
static size_t sparse_zeros(const float *x, size_t count)
{
    size_t zeros = 0;

    for (; count - zeros >= 8; zeros += 8) {
        uint32_t bits[8], any = 0;

        memcpy(bits, x + zeros, sizeof bits);
        for (int i = 0; i < 8; i++)
            any |= bits[i];
        if (any != 0)
            break;
    }
    while (zeros < count && sparse_is_zero(x + zeros))
        zeros++;
    return zeros;
}

/* Values up to the end, or to more than a few zeros. */
static size_t sparse_values(const float *x, size_t count)
{
    size_t values = 0, zeros = 0;

    while (values + zeros < count && zeros <= FEW) {
        if (sparse_is_zero(x + values + zeros)) {
            zeros++;
        } else {
            values += zeros + 1;
            zeros = 0;
        }
    }
    return zeros > FEW ? values : count;
}

static size_t sparse_encode(const void *options, const float *x, float *residual, size_t count,
                            uint8_t *bytes)
{
    uint8_t *to = bytes;

    (void)options;
    (void)residual;
    for (size_t at = 0; at < count;) {
        size_t zeros = sparse_zeros(x + at, count - at), values;

        zeros = zeros < UINT32_MAX ? zeros : UINT32_MAX;
        at += zeros;
        values = sparse_values(x + at, count - at);
        values = values < UINT32_MAX ? values : UINT32_MAX;
        to = base_put_le32(base_put_le32(to, (uint32_t)zeros), (uint32_t)values);
        memcpy(to, x + at, values * sizeof *x);
        to += values * sizeof *x;
        at += values;
    }
    return (size_t)(to - bytes);
}

static base_status sparse_read_run(struct base_cursor *in, float *y, size_t count, size_t *length_p)
{
    base_status st = BASE_OK;
    uint32_t zeros = 0, values = 0;
    const uint8_t *bytes;
    float bad = 0;

    TRY(base_cursor_le32(in, &zeros));
    TRY(base_cursor_le32(in, &values));
    *length_p = (size_t)zeros + values;
    if (*length_p == 0 || *length_p > count)
        TRY(base_fail(BASE_ERR_DATA, "a run of %u zeros and %u values where %zu are left", zeros,
                      values, count));
    TRY(base_cursor_skip(in, values * sizeof *y, &bytes));
    memset(y, 0, zeros * sizeof *y);
    memcpy(y + zeros, bytes, values * sizeof *y);
    for (size_t i = zeros; i < *length_p; i++)
        bad += y[i] * 0; /* 0, or NaN where y[i] is not finite */
    if (!isfinite(bad))
        TRY(base_fail(BASE_ERR_DATA, "a value that is not finite"));
out:
    return st;
}

static base_status sparse_decode(const void *options, const uint8_t *bytes, size_t length, float *y,
                                 size_t count)
{
    base_status st = BASE_OK;
    struct base_cursor in = base_cursor_of(bytes, length);
    size_t at = 0, run = 0;

    (void)options;
    for (; at < count; at += run)
        TRY(sparse_read_run(&in, y + at, count - at, &run));
    if (base_cursor_left(&in) > 0)
        TRY(base_fail(BASE_ERR_DATA, "bytes after the last of %zu values", count));
out:
    return st;
}

const struct train_wire train_wire_sparse = {
    .name = "sparse",
    .help = "as they are, without runs of zeros",
    .exact = true,
    .bound = sparse_bound,
    .encode = sparse_encode,
    .decode = sparse_decode,
};
