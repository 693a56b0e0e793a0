/* SPDX-License-Identifier: MIT
 *
 * Integers of 4 bits, 64 values to a scale (train/wire_block.h).
 */
#include "train/wire.h"
#include "train/wire_block.h"

static const struct train_wire_blocks form = {.bits = 4, .values = 64};

static size_t int4_bound(const void *options, size_t count)
{
    (void)options;
    return train_wire_blocks_bound(&form, count);
}

static size_t int4_encode(const void *options, const float *x, float *residual, size_t count,
                          uint8_t *bytes)
{
    (void)options;
    return train_wire_blocks_encode(&form, x, residual, count, bytes);
}

static base_status int4_decode(const void *options, const uint8_t *bytes, size_t length, float *y,
                               size_t count)
{
    (void)options;
    return train_wire_blocks_decode(&form, bytes, length, y, count);
}

const struct train_wire train_wire_int4 = {
    .name = "int4",
    .help = "integers with a scale for each 64 values, 4.25 bits a value",
    .bound = int4_bound,
    .encode = int4_encode,
    .decode = int4_decode,
};
