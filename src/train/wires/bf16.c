/* SPDX-License-Identifier: MIT
 *
 * bfloat16, the upper half of a float, rounded to the nearest; little-endian.
 */
#include <math.h>
#include <string.h>

#include "coll/kernels.h"
#include "train/wire.h"

enum { BLOCK = 256 }; /* values that are rounded at a time, on the stack */

static size_t bf16_bound(const void *options, size_t count)
{
    (void)options;
    return count * sizeof(uint16_t);
}

static size_t bf16_encode(const void *options, const float *x, float *residual, size_t count,
                          uint8_t *bytes)
{
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t n = count - from < BLOCK ? count - from : BLOCK;
        float *rest = residual + from, sent[BLOCK];
        uint16_t packed[BLOCK];

        for (size_t i = 0; i < n; i++)
            rest[i] += x[from + i];
        coll_kernels()->pack(n, rest, packed);
        coll_kernels()->unpack(n, packed, sent);
        for (size_t i = 0; i < n; i++)
            rest[i] -= sent[i];
        memcpy(bytes + from * sizeof *packed, packed, n * sizeof *packed);
    }
    return bf16_bound(options, count);
}

static base_status bf16_decode(const void *options, const uint8_t *bytes, size_t length, float *y,
                               size_t count)
{
    float bad = 0;

    if (length != bf16_bound(options, count))
        return base_fail(BASE_ERR_DATA, "%zu bytes for %zu values", length, count);
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t n = count - from < BLOCK ? count - from : BLOCK;
        uint16_t packed[BLOCK]; /* the bytes need not be aligned */

        memcpy(packed, bytes + from * sizeof *packed, n * sizeof *packed);
        coll_kernels()->unpack(n, packed, y + from);
        for (size_t i = 0; i < n; i++)
            bad += y[from + i] * 0; /* 0, or NaN where y is not finite */
    }
    return isfinite(bad) ? BASE_OK : base_fail(BASE_ERR_DATA, "a value that is not finite");
}

const struct train_wire train_wire_bf16 = {
    .name = "bf16",
    .help = "the upper half of each float, 16 bits a value",
    .bound = bf16_bound,
    .encode = bf16_encode,
    .decode = bf16_decode,
};
