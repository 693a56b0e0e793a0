/* SPDX-License-Identifier: MIT
 *
 * Integers of 8 bits, 256 values to a scale (train/wire_block.h).
 */
#include "train/wire.h"
#include "train/wire_block.h"

static const struct train_wire_blocks form = {.bits = 8, .values = 256};

static size_t int8_bound(const void *options, size_t count)
{
    (void)options;
    return train_wire_blocks_bound(&form, count);
}

static size_t int8_encode(const void *options, const float *x, float *residual, size_t count,
                          uint8_t *bytes)
{
    (void)options;
    return train_wire_blocks_encode(&form, x, residual, count, bytes);
}

static base_status int8_decode(const void *options, const uint8_t *bytes, size_t length, float *y,
                               size_t count)
{
    (void)options;
    return train_wire_blocks_decode(&form, bytes, length, y, count);
}

const struct train_wire train_wire_int8 = {
    .name = "int8",
    .help = "integers with a scale for each 256 values, 8.06 bits a value",
    .bound = int8_bound,
    .encode = int8_encode,
    .decode = int8_decode,
};
