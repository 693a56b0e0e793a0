/* SPDX-License-Identifier: MIT */
#include "comm/link.h"

#include <string.h>

#include "base/crc32c.h"

/* PIECE: payload of one frame. The checksum is sent before the payload, so the payload is read
 * twice and should stay in the cache in between. */
enum { PIECE = 256 << 10, DISCARDED = 16 << 10 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void comm_link_init(struct comm_link *link, uint32_t view, enum comm_channel channel)
{
    *link = (struct comm_link){.view = view, .channel = channel};
}

void comm_link_fini(struct comm_link *link)
{
    comm_stream_close(link->stream);
    link->stream = NULL;
}

void comm_link_post(struct comm_link *link, struct comm_request *request)
{
    struct comm_request **first = request->sends ? &link->out.first : &link->in.first;
    struct comm_request **last = request->sends ? &link->out.last : &link->in.last;

    if (*first == NULL)
        *first = request;
    else
        (*last)->next = request;
    *last = request;
}

struct pollfd comm_link_watch(const struct comm_link *link)
{
    return (struct pollfd){.fd = comm_stream_fd(link->stream),
                           .events = comm_stream_events(link->stream, link->in.first != NULL,
                                                        link->out.first != NULL)};
}

static void begin_frame(struct comm_link *link)
{
    const struct comm_request *r = link->out.first;
    struct comm_frame frame = {.channel = (uint16_t)link->channel,
                               .view = link->view,
                               .tag = r->tag,
                               .count = least(r->count - r->moved, PIECE)};

    frame.type = r->moved + frame.count == r->count ? COMM_FRAME_DATA : COMM_FRAME_PART;
    if (!comm_stream_encrypted(link->stream))
        frame.crc = base_crc32c(0, (const uint8_t *)r->bytes + r->moved, frame.count);
    comm_frame_write(&frame, link->sending.header);
    link->sending.begun = true;
    link->sending.count = COMM_FRAME_BYTES + frame.count;
    link->sending.moved = 0;
}

/* Writes what the socket takes of the frame that is under way. */
static base_status write_some(struct comm_link *link, size_t *moved_p)
{
    const uint8_t *payload = (const uint8_t *)link->out.first->bytes + link->out.first->moved;
    size_t at = link->sending.moved, count = link->sending.count;

    if (at < COMM_FRAME_BYTES)
        return comm_stream_write_two(link->stream, link->sending.header + at, COMM_FRAME_BYTES - at,
                                     payload, count - COMM_FRAME_BYTES, moved_p);
    return comm_stream_write(link->stream, payload + (at - COMM_FRAME_BYTES), count - at, moved_p);
}

base_status comm_link_send(struct comm_link *link, bool *moved_p)
{
    struct comm_request *r = link->out.first;
    base_status st = BASE_OK;
    size_t moved = 0;

    if (!link->sending.begun)
        begin_frame(link);
    do {
        TRY(write_some(link, &moved));
        link->sending.moved += moved;
        link->bytes_sent += moved;
        *moved_p |= moved > 0;
    } while (moved > 0 && link->sending.moved < link->sending.count);
    if (link->sending.moved < link->sending.count)
        goto out;
    link->sending.begun = false;
    r->moved += link->sending.count - COMM_FRAME_BYTES;
    if (r->moved == r->count) {
        link->out.first = r->next;
        r->done = true;
    }
out:
    return st;
}

/* Fails unless this is the next frame of that request. */
static base_status fits(const struct comm_link *link, const struct comm_frame *frame,
                        const struct comm_request *r)
{
    const size_t left = r->count - r->moved;

    if (frame->type != COMM_FRAME_DATA && frame->type != COMM_FRAME_PART)
        return base_fail(BASE_ERR_DATA, "%s sent a frame of type %u among data",
                         comm_stream_peer(link->stream), frame->type);
    if (frame->view != link->view || frame->channel != link->channel)
        return base_fail(BASE_ERR_DATA, "%s sent a frame of view %u, channel %u in view %u, %u",
                         comm_stream_peer(link->stream), frame->view, frame->channel, link->view,
                         link->channel);
    if (r->any && (r->moved == 0 || frame->tag == r->tag) &&
        (frame->type == COMM_FRAME_DATA || frame->count > 0))
        return BASE_OK; /* the length of the message is known after its last frame */
    if (frame->tag != r->tag || (frame->type == COMM_FRAME_DATA && frame->count != left) ||
        (frame->type == COMM_FRAME_PART && (frame->count == 0 || frame->count >= left)))
        return base_fail(BASE_ERR_DATA,
                         "%s sent %llu bytes%s with tag %u where %zu with tag %u were expected",
                         comm_stream_peer(link->stream), (unsigned long long)frame->count,
                         frame->type == COMM_FRAME_PART ? " and more" : "", frame->tag,
                         r->any ? r->room : left, r->tag);
    return BASE_OK;
}

/* Reads a header, and what comes with it, into the stage. */
static base_status read_header(struct comm_link *link, bool *moved_p)
{
    struct comm_frame *frame = &link->receiving.frame;
    size_t moved = 1, have = link->stage_end - link->stage_at;
    base_status st = BASE_OK;
    struct base_cursor c;

    memmove(link->stage, link->stage + link->stage_at, have);
    link->stage_at = 0;
    link->stage_end = have;
    while (link->stage_end < COMM_FRAME_BYTES && moved > 0) {
        TRY(comm_stream_read(link->stream, link->stage + link->stage_end,
                             COMM_LINK_STAGE - link->stage_end, &moved));
        link->stage_end += moved;
        *moved_p |= moved > 0;
    }
    if (link->stage_end < COMM_FRAME_BYTES)
        goto out;
    c = base_cursor_of(link->stage, link->stage_end);
    TRY(comm_frame_read(&c, COMM_MAX_DATA, frame));
    TRY(fits(link, frame, link->in.first));
    link->in.first->tag = frame->tag; /* a comm_receive_any learns the tag here */
    link->stage_at = COMM_FRAME_BYTES;
    link->receiving.begun = true;
    link->receiving.moved = 0;
    link->receiving.crc = 0;
out:
    return st;
}

/* Takes the bytes that were read ahead first, then reads straight from the stream. */
static base_status read_payload(struct comm_link *link, uint8_t *to, size_t count, size_t *moved_p)
{
    size_t staged = least(count, link->stage_end - link->stage_at);

    if (staged == 0)
        return comm_stream_read(link->stream, to, count, moved_p);
    memcpy(to, link->stage + link->stage_at, staged);
    link->stage_at += staged;
    *moved_p = staged;
    return BASE_OK;
}

static base_status end_frame(struct comm_link *link)
{
    struct comm_request *r = link->in.first;
    base_status st = BASE_OK;

    link->receiving.begun = false;
    if (!comm_stream_encrypted(link->stream))
        TRY(base_prefix(comm_frame_check(&link->receiving.frame, link->receiving.crc), "%s",
                        comm_stream_peer(link->stream)));
    r->moved += link->receiving.frame.count;
    if (link->receiving.frame.type == COMM_FRAME_DATA) {
        link->in.first = r->next;
        r->count = r->moved;
        r->done = true;
    }
out:
    return st;
}

base_status comm_link_receive(struct comm_link *link, bool *moved_p)
{
    const bool summed = !comm_stream_encrypted(link->stream);
    struct comm_request *r = link->in.first;
    uint8_t discarded[DISCARDED];
    base_status st = BASE_OK;
    size_t moved = 1;

    if (!link->receiving.begun)
        TRY(read_header(link, moved_p));
    if (!link->receiving.begun)
        goto out;
    while (link->receiving.moved < link->receiving.frame.count && moved > 0) {
        size_t left = link->receiving.frame.count - link->receiving.moved;
        uint8_t *to = discarded;

        if (r->any && r->moved + link->receiving.frame.count > r->room)
            left = least(left, sizeof discarded);
        else
            to = (uint8_t *)r->bytes + r->moved + link->receiving.moved;
        TRY(read_payload(link, to, left, &moved));
        if (summed)
            link->receiving.crc = base_crc32c(link->receiving.crc, to, moved);
        link->receiving.moved += moved;
        *moved_p |= moved > 0;
    }
    if (link->receiving.moved == link->receiving.frame.count) {
        *moved_p = true;
        TRY(end_frame(link));
    }
out:
    return st;
}
