/* SPDX-License-Identifier: MIT
 *
 * Control messages: queued as frames in one buffer, collected frame by frame in another.
 */
#include "comm/mailbox.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "comm/frame.h"

enum { READ_BYTES = 64 << 10 };

struct buffer {
    uint8_t *bytes;
    size_t count, room;
};

struct pending_fd { /* a descriptor to send with byte `at` of the queue */
    size_t at;
    int fd;
    struct pending_fd *next;
};

struct comm_mailbox {
    struct comm_stream *stream;
    struct buffer out, in;
    size_t written; /* bytes of `out` that were written */
    struct pending_fd *pending_fds;
    int fd;       /* came with the message last returned; -1: none */
    bool refused; /* a message could not be queued */
};

struct comm_mailbox *comm_mailbox_new(struct comm_stream *stream)
{
    struct comm_mailbox *box = base_calloc(1, sizeof *box);

    box->stream = stream;
    box->fd = -1;
    return box;
}

static void drop_pending_fd(struct comm_mailbox *box)
{
    struct pending_fd *p = box->pending_fds;

    box->pending_fds = p->next;
    close(p->fd);
    base_free(p);
}

static void drop_fd(struct comm_mailbox *box)
{
    if (box->fd >= 0)
        close(box->fd);
    box->fd = -1;
}

void comm_mailbox_free(struct comm_mailbox *box)
{
    if (box == NULL)
        return;
    while (box->pending_fds != NULL)
        drop_pending_fd(box);
    drop_fd(box);
    comm_stream_close(box->stream);
    base_free(box->out.bytes);
    base_free(box->in.bytes);
    base_free(box);
}

struct comm_stream *comm_mailbox_stream(struct comm_mailbox *box)
{
    return box->stream;
}

static uint8_t *grow(struct buffer *b, size_t more)
{
    if (b->count + more > b->room) {
        b->room = b->count + more > 2 * b->room ? b->count + more : 2 * b->room;
        b->bytes = base_realloc(b->bytes, b->room, 1);
    }
    return b->bytes + b->count;
}

static void board(struct comm_mailbox *box, size_t at, int fd)
{
    struct pending_fd **last = &box->pending_fds, *p = base_calloc(1, sizeof *p);

    while (*last != NULL)
        last = &(*last)->next;
    p->at = at;
    p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    *last = p;
}

/* Removes the written bytes from the queue once they are the larger part of it. */
static void compact(struct comm_mailbox *box)
{
    if (box->written == 0 || box->written < box->out.count - box->written)
        return;
    box->out.count -= box->written;
    memmove(box->out.bytes, box->out.bytes + box->written, box->out.count);
    for (struct pending_fd *p = box->pending_fds; p != NULL; p = p->next)
        p->at -= box->written;
    box->written = 0;
}

static void queue(struct comm_mailbox *box, const json_t *message, int fd)
{
    char *text = json_dumps(message, JSON_COMPACT);
    struct comm_frame frame = {.type = COMM_FRAME_CONTROL, .tag = fd >= 0};

    frame.count = text != NULL ? strlen(text) : 0;
    compact(box);
    if (text == NULL || frame.count > COMM_MAX_CONTROL ||
        box->out.count - box->written > COMM_MAX_BACKLOG) {
        box->refused = true;
        free(text);
        return;
    }
    if (!comm_stream_encrypted(box->stream))
        frame.crc = base_crc32c(0, text, frame.count);
    if (fd >= 0)
        board(box, box->out.count, fd);
    comm_frame_write(&frame, grow(&box->out, COMM_FRAME_BYTES));
    box->out.count += COMM_FRAME_BYTES;
    memcpy(grow(&box->out, frame.count), text, frame.count);
    box->out.count += frame.count;
    free(text);
}

void comm_mailbox_send(struct comm_mailbox *box, const json_t *message)
{
    queue(box, message, -1);
}

void comm_mailbox_send_fd(struct comm_mailbox *box, const json_t *message, int fd)
{
    queue(box, message, fd);
}

static base_status write_some(struct comm_mailbox *box)
{
    base_status st = BASE_OK;
    size_t moved = 1;

    while (box->written < box->out.count && moved > 0) {
        const struct pending_fd *p = box->pending_fds;
        const bool leaves = p != NULL && p->at == box->written;
        const struct pending_fd *next = leaves ? p->next : p;
        const uint8_t *at = box->out.bytes + box->written;
        const size_t count = (next != NULL ? next->at : box->out.count) - box->written;

        if (leaves)
            TRY(comm_stream_write_fd(box->stream, at, count, p->fd, &moved));
        else
            TRY(comm_stream_write(box->stream, at, count, &moved));
        if (leaves && moved > 0)
            drop_pending_fd(box);
        box->written += moved;
    }
    compact(box);
out:
    return st;
}

/* Takes the first frame of the bytes that have come, if it is whole. */
static base_status next_message(struct comm_mailbox *box, json_t **message_p)
{
    struct base_cursor c = base_cursor_of(box->in.bytes, box->in.count);
    base_status st = BASE_OK;
    struct comm_frame frame;
    const uint8_t *text;

    if (base_cursor_left(&c) < COMM_FRAME_BYTES)
        goto out;
    TRY(comm_frame_read(&c, COMM_MAX_CONTROL, &frame));
    if (frame.type != COMM_FRAME_CONTROL || frame.tag > 1)
        TRY(base_fail(BASE_ERR_DATA, "a frame of type %u and tag %u among control messages",
                      frame.type, frame.tag));
    if (base_cursor_left(&c) < frame.count)
        goto out;
    TRY(base_cursor_skip(&c, frame.count, &text));
    if (!comm_stream_encrypted(box->stream))
        TRY(comm_frame_check(&frame, base_crc32c(0, text, frame.count)));
    TRY(base_json_parse((const char *)text, frame.count, message_p));
    if (!json_is_object(*message_p))
        TRY(base_fail(BASE_ERR_DATA, "a control message that is no object"));
    if (frame.tag == 1 && (box->fd = comm_stream_take_fd(box->stream)) < 0)
        TRY(base_fail(BASE_ERR_DATA, "a control message came without its descriptor"));
    box->in.count = base_cursor_left(&c);
    memmove(box->in.bytes, c.at, box->in.count);
out:
    if (st != BASE_OK) {
        json_decref(*message_p);
        *message_p = NULL;
    }
    return base_prefix(st, "%s", comm_stream_peer(box->stream));
}

base_status comm_mailbox_move(struct comm_mailbox *box, json_t **message_p)
{
    base_status st = BASE_OK;
    size_t moved = 1;

    *message_p = NULL;
    drop_fd(box);
    if (box->refused)
        TRY(base_fail(BASE_ERR_DATA, "%s: a control message is too long, or too many are unread",
                      comm_stream_peer(box->stream)));
    /* Even when writing to a peer fails, what it sent before it went is handed out first. */
    TRY(next_message(box, message_p));
    while (*message_p == NULL && moved > 0) {
        TRY(comm_stream_read(box->stream, grow(&box->in, READ_BYTES), READ_BYTES, &moved));
        box->in.count += moved;
        TRY(next_message(box, message_p));
    }
    if (*message_p == NULL)
        TRY(write_some(box));
out:
    return st;
}

int comm_mailbox_take_fd(struct comm_mailbox *box)
{
    int fd = box->fd;

    box->fd = -1;
    return fd;
}

short comm_mailbox_events(const struct comm_mailbox *box)
{
    return comm_stream_events(box->stream, true, box->written < box->out.count);
}

base_status comm_mailbox_flush(struct comm_mailbox *box, double deadline)
{
    base_status st = BASE_OK;

    TRY(write_some(box));
    while (box->out.count > 0) {
        TRY(comm_stream_wait(box->stream, false, true, deadline));
        TRY(write_some(box));
    }
out:
    return st;
}
