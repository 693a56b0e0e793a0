/* SPDX-License-Identifier: MIT
 *
 * A connected byte stream that never blocks: a socket, plain or under TLS 1.3 with the job's secret
 * as external PSK (TLS_AES_128_GCM_SHA256, psk_dhe_ke, no tickets, no early data; RFC 9257). Both
 * control and data connections are streams. Also: making them, with every step under a deadline.
 */
#ifndef COMM_STREAM_H
#define COMM_STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/status.h"
#include "comm/secret.h"

struct comm_stream;

/* Makes a stream of one end of a socket pair (agent and worker). */
base_status comm_stream_of(int fd, struct comm_stream **stream_p);
void comm_stream_close(struct comm_stream *stream); /* accepts NULL */
int comm_stream_fd(const struct comm_stream *stream);
bool comm_stream_encrypted(const struct comm_stream *stream);
const char *comm_stream_peer(const struct comm_stream *stream); /* "10.0.0.2:4711", for messages */

/* *moved_p: bytes moved; 0: would block (comm_stream_events says for what to poll). A closed or
 * broken connection is BASE_ERR_PEER_LOST, bytes that were damaged under TLS are BASE_ERR_DATA.
 * After a short write the rest must be offered next (more may follow it). */
base_status comm_stream_read(struct comm_stream *stream, void *bytes, size_t count,
                             size_t *moved_p);
base_status comm_stream_write(struct comm_stream *stream, const void *bytes, size_t count,
                              size_t *moved_p);
short comm_stream_events(const struct comm_stream *stream, bool reads, bool writes);
/* Writes a frame's header and (the rest of) its payload in one go. */
base_status comm_stream_write_two(struct comm_stream *stream, const void *head, size_t head_count,
                                  const void *bytes, size_t count, size_t *moved_p);
/* Unix sockets only. Writing sends a descriptor along with the first byte; taking returns the
 * oldest one that came, or -1, and the caller owns it. */
base_status comm_stream_write_fd(struct comm_stream *stream, const void *bytes, size_t count,
                                 int fd, size_t *moved_p);
int comm_stream_take_fd(struct comm_stream *stream);
/* Seconds in which written bytes were on their way to a peer that had room for them, and how many
 * the peer has acknowledged, since the connection was made; false: not known. */
bool comm_stream_sending(const struct comm_stream *stream, double *seconds_p, double *bytes_p);
/* Sleeps until the stream may be read or written; BASE_ERR_TIMEOUT at the deadline. */
base_status comm_stream_wait(const struct comm_stream *stream, bool reads, bool writes,
                             double deadline);

/* The hello: the first frame of the side that connects, inside TLS, says who connects and why. */
enum { COMM_PROTOCOL = 1 };
struct comm_hello {
    char job[40];      /* the job's random name; "" from a host that does not know it yet */
    char role[16];     /* "agent", "data" */
    uint32_t from, to; /* worker ids of a data connection; hosts of a control connection */
    uint32_t view;     /* the view of a data connection; 0 otherwise */
    uint16_t channel;  /* the channel of a data connection; 0 otherwise */
};
json_t *comm_hello_to_json(const struct comm_hello *hello);
base_status comm_hello_from_json(const json_t *object, struct comm_hello *hello_p);

/* Connects, TLS and hello, and waits for the welcome. `address` is numeric; secret NULL: plain,
 * loopback only. If no process listens it fails with BASE_ERR_IO; a refusal or a wrong token
 * BASE_ERR_NETWORK, a signal that asks to stop (base/stop.h) BASE_ERR_INTERRUPTED. */
base_status comm_connect(const char *address, uint16_t port, const struct comm_secret *secret,
                         const struct comm_hello *hello, double deadline,
                         struct comm_stream **stream_p);

/* The TLS settings that all connections of one side share. */
struct comm_tls;
base_status comm_tls_new(const struct comm_secret *secret, bool accepts, struct comm_tls **tls_p);
void comm_tls_free(struct comm_tls *tls); /* accepts NULL; streams made with it stay valid */

/* comm_connect in steps, for several connections at a time in the caller's poll loop. `tls` must
 * outlive them; NULL: plain. A step moves the connection on; the first step comes before the first
 * poll. *stream_p: the stream once it is ready, else NULL. */
struct comm_connecting;
base_status comm_connecting_new(const char *address, uint16_t port, struct comm_tls *tls,
                                const struct comm_hello *hello,
                                struct comm_connecting **connecting_p);
void comm_connecting_free(struct comm_connecting *connecting); /* accepts NULL */
base_status comm_connecting_step(struct comm_connecting *connecting, struct comm_stream **stream_p);
struct pollfd comm_connecting_watch(const struct comm_connecting *connecting);
/* True if it failed because the host answered that no process listens at the port. */
bool comm_connecting_refused(const struct comm_connecting *connecting);

/* A listener accepts in the background of the caller's poll loop: at most COMM_MAX_HANDSHAKES at a
 * time, each within COMM_HANDSHAKE_SECONDS. A refusal is logged once per address and minute. An
 * address that was refused often may have only a few handshakes at a time: a newer one ends its
 * oldest. It refuses any address but loopback without a secret. */
struct comm_listener;
enum { COMM_MAX_HANDSHAKES = 32, COMM_HANDSHAKE_SECONDS = 5 };
base_status comm_listen(const char *address, uint16_t port, const struct comm_secret *secret,
                        struct comm_listener **listener_p);
void comm_listener_close(struct comm_listener *listener); /* accepts NULL */
uint16_t comm_listener_port(const struct comm_listener *listener);
/* Sockets to poll, at most COMM_MAX_HANDSHAKES + 1. Poll for a second at most: slow handshakes end
 * in comm_accept. */
int comm_listener_watch(struct comm_listener *listener, struct pollfd *fds, int room);
/* Moves every handshake on; *stream_p: a stream whose peer has said hello, or NULL. Call it until
 * NULL. The caller looks at the hello and answers with comm_welcome or comm_refuse. */
base_status comm_accept(struct comm_listener *listener, struct comm_hello *hello_p,
                        struct comm_stream **stream_p);
base_status comm_welcome(struct comm_stream *stream, double deadline);
void comm_refuse(struct comm_listener *listener, struct comm_stream *stream, const char *why);

#endif
