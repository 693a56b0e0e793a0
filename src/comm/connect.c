/* SPDX-License-Identifier: MIT
 *
 * The side that connects: TCP, TLS, hello, welcome, each step without blocking.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/stop.h"
#include "comm/comm_stream_private.h"

struct comm_connecting {
    struct comm_address address;
    char peer[COMM_PEER_TEXT];
    int fd;                     /* until there is a stream */
    struct comm_tls *tls;       /* NULL: plain */
    struct comm_stream *stream; /* NULL: TCP is not connected yet */
    struct comm_hello hello;
    struct comm_greeting greeting;
    bool refused;
    enum { TO_CONNECT, TO_SHAKE, TO_GREET, TO_HEAR } next;
};

base_status comm_connecting_new(const char *address, uint16_t port, struct comm_tls *tls,
                                const struct comm_hello *hello,
                                struct comm_connecting **connecting_p)
{
    struct comm_connecting *c = base_calloc(1, sizeof *c);
    base_status st = BASE_OK;

    *connecting_p = NULL;
    c->fd = -1;
    c->tls = tls;
    c->hello = *hello;
    TRY(comm_address_parse(address, port, &c->address));
    TRY(comm_address_allowed(&c->address, address, "connecting to", tls != NULL));
    comm_address_text(&c->address, c->peer);
    TRY(comm_socket_new(&c->address, &c->fd));
    comm_socket_tune(c->fd);
    *connecting_p = c;
    c = NULL;
out:
    comm_connecting_free(c);
    return st;
}

void comm_connecting_free(struct comm_connecting *connecting)
{
    if (connecting == NULL)
        return;
    if (connecting->stream == NULL && connecting->fd >= 0)
        close(connecting->fd);
    comm_stream_close(connecting->stream);
    base_free(connecting);
}

struct pollfd comm_connecting_watch(const struct comm_connecting *connecting)
{
    if (connecting->stream == NULL)
        return (struct pollfd){.fd = connecting->fd, .events = POLLOUT};
    return (struct pollfd){.fd = connecting->fd,
                           .events =
                               comm_stream_events(connecting->stream, connecting->next != TO_GREET,
                                                  connecting->next == TO_GREET)};
}

/* A second connect() tells how the first one ended. */
static base_status finish_connect(struct comm_connecting *c, bool *done_p)
{
    int result = connect(c->fd, (const struct sockaddr *)&c->address.at, c->address.length);

    *done_p = result == 0 || errno == EISCONN;
    if (*done_p)
        return comm_stream_of(c->fd, &c->stream);
    if (errno == EINPROGRESS || errno == EALREADY || errno == EINTR)
        return BASE_OK;
    c->refused = errno == ECONNREFUSED;
    return base_fail(BASE_ERR_IO, "cannot connect to %s: %m", c->peer);
}

bool comm_connecting_refused(const struct comm_connecting *connecting)
{
    return connecting->refused;
}

static base_status step(struct comm_connecting *c, bool *done_p)
{
    switch (c->next) {
    case TO_CONNECT:
        return finish_connect(c, done_p);
    case TO_SHAKE:
        if (c->tls == NULL)
            return BASE_OK;
        if (c->stream->tls == NULL) {
            base_status st = comm_tls_begin(c->tls, c->stream);

            if (st != BASE_OK)
                return st;
        }
        return base_prefix(comm_tls_handshake(c->stream, done_p), "is the token the right one?");
    case TO_GREET:
        if (c->greeting.count == 0)
            comm_greeting_hello(&c->greeting, &c->hello, c->tls != NULL);
        return comm_greeting_write(&c->greeting, c->stream, done_p);
    default:
        return comm_greeting_read(&c->greeting, c->stream, done_p);
    }
}

base_status comm_connecting_step(struct comm_connecting *connecting, struct comm_stream **stream_p)
{
    base_status st = BASE_OK;
    bool done = true;

    *stream_p = NULL;
    while (done) {
        TRY(step(connecting, &done));
        if (done && connecting->next == TO_HEAR) {
            TRY(comm_greeting_is_welcome(&connecting->greeting));
            *stream_p = connecting->stream;
            connecting->stream = NULL;
            connecting->fd = -1;
            goto out;
        }
        if (done)
            connecting->next++;
        if (done && connecting->next == TO_HEAR)
            connecting->greeting.moved = 0;
    }
out:
    /* The handshake was not over, so this is a refusal and not the loss of a worker. */
    if (st == BASE_ERR_PEER_LOST || st == BASE_ERR_DATA)
        st = base_prefix(BASE_ERR_NETWORK, "%s refused the connection", connecting->peer);
    return st;
}

base_status comm_connect(const char *address, uint16_t port, const struct comm_secret *secret,
                         const struct comm_hello *hello, double deadline,
                         struct comm_stream **stream_p)
{
    struct comm_connecting *c = NULL;
    struct comm_tls *tls = NULL;
    base_status st = BASE_OK;

    *stream_p = NULL;
    if (secret != NULL)
        TRY(comm_tls_new(secret, false, &tls));
    TRY(comm_connecting_new(address, port, tls, hello, &c));
    TRY(comm_connecting_step(c, stream_p));
    while (*stream_p == NULL) {
        struct pollfd fd = comm_connecting_watch(c);

        TRY(comm_poll_sockets(&fd, 1, deadline, c->peer));
        if (base_stop_signal() != 0)
            TRY(base_fail(BASE_ERR_INTERRUPTED, "stopped before %s answered", c->peer));
        TRY(comm_connecting_step(c, stream_p));
    }
out:
    comm_connecting_free(c);
    comm_tls_free(tls);
    return st;
}
