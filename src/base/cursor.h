/* SPDX-License-Identifier: MIT
 *
 * A bounds-checked cursor: the only way bytes from outside are read. A read past the end is
 * BASE_ERR_DATA and moves nothing. The caller adds the file's name with base_prefix.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct base_cursor {
    const uint8_t *at, *end;
};

static inline struct base_cursor base_cursor_of(const void *bytes, size_t count)
{
    const uint8_t *at =
        bytes != NULL ? bytes : (const void *)""; /* the map of an empty file is NULL */

    return (struct base_cursor){at, at + count};
}

static inline size_t base_cursor_left(const struct base_cursor *c)
{
    return (size_t)(c->end - c->at);
}

base_status base_cursor_skip(struct base_cursor *c, size_t count, const uint8_t **bytes_p);
base_status base_cursor_u8(struct base_cursor *c, uint8_t *value_p);
base_status base_cursor_le16(struct base_cursor *c, uint16_t *value_p);
base_status base_cursor_be32(struct base_cursor *c, uint32_t *value_p);
base_status base_cursor_le32(struct base_cursor *c, uint32_t *value_p);
base_status base_cursor_le64(struct base_cursor *c, uint64_t *value_p);

/* The other way: writes a number for such a reader, and returns where the next one goes. */
static inline uint8_t *base_put_le32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static inline uint8_t *base_put_le64(uint8_t *at, uint64_t value)
{
    at = base_put_le32(at, (uint32_t)value);
    return base_put_le32(at, (uint32_t)(value >> 32));
}

#endif
