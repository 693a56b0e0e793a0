/* SPDX-License-Identifier: MIT */
#include "base/cursor.h"

#include <endian.h>
#include <string.h>

base_status base_cursor_skip(struct base_cursor *c, size_t count, const uint8_t **bytes_p)
{
    *bytes_p = NULL;
    if (count > base_cursor_left(c))
        return base_fail(BASE_ERR_DATA, "ends too early: %zu bytes wanted, %zu left", count,
                         base_cursor_left(c));
    *bytes_p = c->at;
    c->at += count;
    return BASE_OK;
}

static base_status take(struct base_cursor *c, void *value_p, size_t size)
{
    const uint8_t *bytes = NULL;
    base_status st = base_cursor_skip(c, size, &bytes);

    if (st == BASE_OK)
        memcpy(value_p, bytes, size);
    else
        memset(value_p, 0, size);
    return st;
}

base_status base_cursor_u8(struct base_cursor *c, uint8_t *value_p)
{
    return take(c, value_p, 1);
}

base_status base_cursor_le16(struct base_cursor *c, uint16_t *value_p)
{
    base_status st = take(c, value_p, 2);

    *value_p = le16toh(*value_p);
    return st;
}

base_status base_cursor_be32(struct base_cursor *c, uint32_t *value_p)
{
    base_status st = take(c, value_p, 4);

    *value_p = be32toh(*value_p);
    return st;
}

base_status base_cursor_le32(struct base_cursor *c, uint32_t *value_p)
{
    base_status st = take(c, value_p, 4);

    *value_p = le32toh(*value_p);
    return st;
}

base_status base_cursor_le64(struct base_cursor *c, uint64_t *value_p)
{
    base_status st = take(c, value_p, 8);

    *value_p = le64toh(*value_p);
    return st;
}
