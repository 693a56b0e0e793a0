/* SPDX-License-Identifier: MIT
 *
 * Whole control messages over a stream: JSON objects in COMM_FRAME_CONTROL frames, with buffers of
 * their own on both sides, never blocking. Used by one thread at a time.
 */
#ifndef COMM_MAILBOX_H
#define COMM_MAILBOX_H

#include "base/json.h"
#include "base/status.h"
#include "comm/stream.h"

enum {
    COMM_MAX_BACKLOG = 16 << 20
}; /* bytes; a connection to a peer that leaves more unread is given up */

struct comm_mailbox;

struct comm_mailbox *comm_mailbox_new(struct comm_stream *stream); /* becomes the stream's owner */
void comm_mailbox_free(struct comm_mailbox *box);                  /* accepts NULL */
struct comm_stream *comm_mailbox_stream(struct comm_mailbox *box);

/* Queues a message. If it cannot be sent (too long, too much unread), the next comm_mailbox_move
 * fails. */
void comm_mailbox_send(struct comm_mailbox *box, const json_t *message);
/* The same with a file descriptor, over Unix sockets only; the caller still owns `fd`. */
void comm_mailbox_send_fd(struct comm_mailbox *box, const json_t *message, int fd);

/* Moves both ways; *message_p: the next whole message, an object, or NULL. Call until NULL. A peer
 * that is gone is BASE_ERR_PEER_LOST once everything it sent was handed out. */
base_status comm_mailbox_move(struct comm_mailbox *box, json_t **message_p);
/* The descriptor that came with the message last returned; -1: none. The caller owns it from now
 * on. If the caller does not take it, the next comm_mailbox_move closes it. */
int comm_mailbox_take_fd(struct comm_mailbox *box);

short comm_mailbox_events(const struct comm_mailbox *box); /* what to poll for */
/* Waits until all queued bytes are written; BASE_ERR_TIMEOUT at the deadline. */
base_status comm_mailbox_flush(struct comm_mailbox *box, double deadline);

#endif
