/* SPDX-License-Identifier: MIT
 *
 * The insides of a stream, for the files that make streams.
 */
#ifndef COMM_COMM_STREAM_PRIVATE_H
#define COMM_COMM_STREAM_PRIVATE_H

#include <openssl/types.h>
#include <sys/socket.h>

#include "comm/stream.h"

enum { COMM_STREAM_FDS = 4, COMM_PEER_TEXT = 72 };

struct comm_stream {
    int fd;
    SSL *tls;   /* NULL: plain */
    bool local; /* a Unix socket: descriptors may come along */
    /* TLS may have to write in order to read and the other way round. */
    short read_wants, write_wants;
    int fds[COMM_STREAM_FDS], fd_count; /* came and were not taken yet */
    char peer[COMM_PEER_TEXT];
};

/* "10.0.0.2:4711", "[::1]:4711" */
void comm_address_text(const struct sockaddr_storage *address, char text[COMM_PEER_TEXT]);

#endif
