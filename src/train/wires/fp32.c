/* SPDX-License-Identifier: MIT
 *
 * Floats as they are, little-endian.
 */
#include <math.h>
#include <string.h>

#include "train/wire.h"

static size_t fp32_bound(const void *options, size_t count)
{
    (void)options;
    return count * sizeof(float);
}

static size_t fp32_encode(const void *options, const float *x, float *residual, size_t count,
                          uint8_t *bytes)
{
    memcpy(bytes, x, count * sizeof *x);
    (void)residual;
    return fp32_bound(options, count);
}

static base_status fp32_decode(const void *options, const uint8_t *bytes, size_t length, float *y,
                               size_t count)
{
    float bad = 0;

    if (length != fp32_bound(options, count))
        return base_fail(BASE_ERR_DATA, "%zu bytes for %zu values", length, count);
    memcpy(y, bytes, length);
    for (size_t i = 0; i < count; i++)
        bad += y[i] * 0; /* 0, or NaN where y[i] is not finite */
    return isfinite(bad) ? BASE_OK : base_fail(BASE_ERR_DATA, "a value that is not finite");
}

const struct train_wire train_wire_fp32 = {
    .name = "fp32",
    .help = "as they are, 32 bits a value",
    .exact = true,
    .bound = fp32_bound,
    .encode = fp32_encode,
    .decode = fp32_decode,
};
