/* SPDX-License-Identifier: MIT */
#include "comm/frame.h"

#include <endian.h>
#include <string.h>

#include "base/crc32c.h"
#include "comm/group.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { COMPARE_CRC = 0 }; /* fuzzing: a checked CRC would reject every mutation */
#else
enum { COMPARE_CRC = 1 };
#endif

enum { MAGIC = 0x31464c50, HEADER_CRC_AT = 28 }; /* "PLF1" */

void comm_frame_write(const struct comm_frame *frame, uint8_t header[COMM_FRAME_BYTES])
{
    const struct {
        uint32_t magic;
        uint16_t type, channel;
        uint32_t view, tag;
        uint64_t count;
        uint32_t crc;
    } wire = {
        .magic = htole32(MAGIC),
        .type = htole16(frame->type),
        .channel = htole16(frame->channel),
        .view = htole32(frame->view),
        .tag = htole32(frame->tag),
        .count = htole64(frame->count),
        .crc = htole32(frame->crc),
    };
    uint32_t crc;

    memcpy(header, &wire, HEADER_CRC_AT);
    crc = htole32(base_crc32c(0, header, HEADER_CRC_AT));
    memcpy(header + HEADER_CRC_AT, &crc, sizeof crc);
}

static base_status check(const struct comm_frame *frame, uint64_t limit)
{
    if (frame->type == 0 || frame->type >= COMM_FRAME_TYPES)
        return base_fail(BASE_ERR_DATA, "a frame of unknown type %u", frame->type);
    if (frame->channel >= COMM_CHANNELS)
        return base_fail(BASE_ERR_DATA, "a frame of unknown channel %u", frame->channel);
    if (frame->count > limit)
        return base_fail(BASE_ERR_DATA, "a frame of %llu bytes, %llu at most",
                         (unsigned long long)frame->count, (unsigned long long)limit);
    return BASE_OK;
}

base_status comm_frame_read(struct base_cursor *cursor, uint64_t limit, struct comm_frame *frame_p)
{
    base_status st = BASE_OK;
    const uint8_t *header;
    struct base_cursor c;
    uint32_t magic, crc;

    *frame_p = (struct comm_frame){0};
    TRY(base_cursor_skip(cursor, COMM_FRAME_BYTES, &header));
    c = base_cursor_of(header, COMM_FRAME_BYTES);
    TRY(base_cursor_le32(&c, &magic));
    TRY(base_cursor_le16(&c, &frame_p->type));
    TRY(base_cursor_le16(&c, &frame_p->channel));
    TRY(base_cursor_le32(&c, &frame_p->view));
    TRY(base_cursor_le32(&c, &frame_p->tag));
    TRY(base_cursor_le64(&c, &frame_p->count));
    TRY(base_cursor_le32(&c, &frame_p->crc));
    TRY(base_cursor_le32(&c, &crc));
    if (magic != MAGIC)
        TRY(base_fail(BASE_ERR_DATA, "no frame of paceline (magic %#010x)", magic));
    if (COMPARE_CRC && crc != base_crc32c(0, header, HEADER_CRC_AT))
        TRY(base_fail(BASE_ERR_DATA, "a frame's header was damaged on its way"));
    TRY(check(frame_p, limit));
out:
    return st;
}

base_status comm_frame_check(const struct comm_frame *frame, uint32_t crc)
{
    if (COMPARE_CRC && frame->crc != crc)
        return base_fail(BASE_ERR_DATA, "a frame's %llu bytes were damaged on their way",
                         (unsigned long long)frame->count);
    return BASE_OK;
}
