/* SPDX-License-Identifier: MIT
 *
 * The insides of streams, for the files that make them: addresses, TLS, greetings.
 */
#ifndef COMM_COMM_STREAM_PRIVATE_H
#define COMM_COMM_STREAM_PRIVATE_H

#include <openssl/types.h>
#include <sys/socket.h>

#include "comm/frame.h"
#include "comm/stream.h"

enum { COMM_STREAM_FDS = 4, COMM_PEER_TEXT = 72, COMM_MAX_HELLO = 1024 };

struct comm_stream {
    int fd;
    SSL *tls;   /* NULL: plain */
    bool local; /* a Unix socket: descriptors may come along */
    /* TLS may have to write in order to read and the other way round. */
    short read_wants, write_wants;
    int fds[COMM_STREAM_FDS], fd_count; /* descriptors that came and were not taken yet */
    char peer[COMM_PEER_TEXT];
};

/* Polls until something happens. At the deadline it fails with BASE_ERR_TIMEOUT: `peer` is silent.
 */
base_status comm_poll_sockets(struct pollfd *fds, int count, double deadline, const char *peer);

/* comm/address.c: numeric addresses and the options of every socket. */
struct comm_address {
    struct sockaddr_storage at;
    socklen_t length;
};
base_status comm_address_parse(const char *text, uint16_t port, struct comm_address *address_p);
bool comm_address_loopback(const struct comm_address *address);
/* "10.0.0.2:4711", "[::1]:4711" */
void comm_address_text(const struct comm_address *address, char text[COMM_PEER_TEXT]);
/* Addresses beyond loopback are allowed only with a secret. `verb` is for the message: "listening
 * on", "connecting to". */
base_status comm_address_allowed(const struct comm_address *address, const char *text,
                                 const char *verb, bool has_secret);
base_status comm_socket_new(const struct comm_address *address, int *fd_p);
void comm_socket_tune(int fd); /* sets the options of a connection's socket */

/* comm/tls.c */
base_status comm_tls_begin(struct comm_tls *tls, struct comm_stream *stream);
base_status comm_tls_handshake(struct comm_stream *stream, bool *done_p);
void comm_tls_end(struct comm_stream *stream); /* accepts a plain stream */
base_status comm_tls_read(struct comm_stream *stream, void *bytes, size_t count, size_t *moved_p);
base_status comm_tls_write(struct comm_stream *stream, const void *head, size_t head_count,
                           const void *bytes, size_t count, size_t *moved_p);

/* comm/hello.c: one frame that comes or goes before a connection is in use, moved byte by byte;
 * never a byte more is read than belongs to it. Begin with moved = 0. */
struct comm_greeting {
    uint8_t bytes[COMM_FRAME_BYTES + COMM_MAX_HELLO];
    size_t moved, count;
};
void comm_greeting_hello(struct comm_greeting *greeting, const struct comm_hello *hello,
                         bool encrypted);
void comm_greeting_welcome(struct comm_greeting *greeting);
base_status comm_greeting_write(struct comm_greeting *greeting, struct comm_stream *stream,
                                bool *done_p);
base_status comm_greeting_read(struct comm_greeting *greeting, struct comm_stream *stream,
                               bool *done_p);
/* The hello, or the welcome, that was read. */
base_status comm_greeting_to_hello(const struct comm_greeting *greeting, bool encrypted,
                                   struct comm_hello *hello_p);
base_status comm_greeting_is_welcome(const struct comm_greeting *greeting);

#endif
