/* SPDX-License-Identifier: MIT
 *
 * One connection of one channel: requests in both directions as frames over a stream. A message is
 * COMM_FRAME_PART frames and one COMM_FRAME_DATA; payload is read straight into the request's
 * buffer, and without TLS its checksum is right before it counts as moved. Never blocks.
 */
#ifndef COMM_LINK_H
#define COMM_LINK_H

#include "comm/frame.h"
#include "comm/group.h"
#include "comm/stream.h"

enum { COMM_LINK_STAGE = 4096 };

struct comm_link {
    struct comm_stream *stream; /* NULL: not connected; requests wait */
    uint32_t view;
    enum comm_channel channel;
    struct {
        struct comm_request *first, *last;
    } out, in;
    struct {
        bool begun;
        uint8_t header[COMM_FRAME_BYTES];
        size_t count, moved; /* bytes of header and payload together */
    } sending;
    struct {
        bool begun;
        struct comm_frame frame;
        size_t moved; /* bytes of the payload */
        uint32_t crc;
    } receiving;
    /* Bytes that were read ahead, so that a small message takes one system call. */
    uint8_t stage[COMM_LINK_STAGE];
    size_t stage_at, stage_end;
    uint64_t bytes_sent;
};

void comm_link_init(struct comm_link *link, uint32_t view, enum comm_channel channel);
void comm_link_fini(struct comm_link *link); /* closes the stream */

void comm_link_post(struct comm_link *link, struct comm_request *request);
static inline bool comm_link_busy(const struct comm_link *link)
{
    return link->out.first != NULL || link->in.first != NULL;
}
/* Each moves one frame at most, so that directions and links take turns. They set *moved_p if bytes
 * moved and leave it alone otherwise. */
base_status comm_link_send(struct comm_link *link, bool *moved_p);
base_status comm_link_receive(struct comm_link *link, bool *moved_p);
struct pollfd comm_link_watch(const struct comm_link *link);

#endif
