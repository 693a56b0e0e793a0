/* SPDX-License-Identifier: MIT
 *
 * Small integers with a scale for each block of values: what the formats int8 and int4 of
 * train/wires share. A block is its scale, a bfloat16, then the integers in two's complement, the
 * first in a byte's low bits. A value is integer times scale.
 */
#ifndef TRAIN_WIRE_BLOCK_H
#define TRAIN_WIRE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct train_wire_blocks {
    int bits;      /* of an integer: 4 or 8 */
    size_t values; /* of a block; even */
};

size_t train_wire_blocks_bound(const struct train_wire_blocks *form, size_t count);
size_t train_wire_blocks_encode(const struct train_wire_blocks *form, const float *x,
                                float *residual, size_t count, uint8_t *bytes);
base_status train_wire_blocks_decode(const struct train_wire_blocks *form, const uint8_t *bytes,
                                     size_t length, float *y, size_t count);

#endif
