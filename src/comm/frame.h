/* SPDX-License-Identifier: MIT
 *
 * The one frame that control and data connections carry: a header of 32 bytes, little endian, and
 * its payload. docs/protocol.md has the table.
 *
 *    0 u32 magic "PLF1"      8 u32 view               24 u32 CRC32C of the payload; 0 under TLS
 *    4 u16 type              12 u32 tag               28 u32 CRC32C of bytes 0 … 27
 *    6 u16 channel           16 u64 payload bytes
 */
#ifndef COMM_FRAME_H
#define COMM_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/status.h"

enum { COMM_FRAME_BYTES = 32 };
enum comm_limit {
    COMM_MAX_CONTROL = 1 << 20, /* largest payload of a control frame */
    COMM_MAX_DATA = 1 << 20,    /* largest payload of a data frame; a message may be several */
};

enum comm_frame_type {
    COMM_FRAME_HELLO = 1, /* JSON: who connects, and for what */
    COMM_FRAME_WELCOME,   /* empty: accepted */
    COMM_FRAME_CONTROL,   /* JSON: cluster/message.h; tag 1: a file descriptor comes along */
    COMM_FRAME_PART,      /* bytes of a message that goes on in the next frame */
    COMM_FRAME_DATA,      /* the last or only bytes of a message */
    COMM_FRAME_TYPES
};

struct comm_frame {
    uint16_t type, channel;
    uint32_t view, tag;
    uint64_t count;
    uint32_t crc;
};

void comm_frame_write(const struct comm_frame *frame, uint8_t header[COMM_FRAME_BYTES]);
/* Checks magic, header CRC, type, channel and that count is at most `limit`. */
base_status comm_frame_read(struct base_cursor *cursor, uint64_t limit, struct comm_frame *frame_p);
/* Fails if the payload's CRC is not the one in the header. Connections with TLS do not need it. */
base_status comm_frame_check(const struct comm_frame *frame, uint32_t crc);

#endif
