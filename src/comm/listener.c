/* SPDX-License-Identifier: MIT
 *
 * The side that accepts. Strangers may connect as often and as slowly as they like: a bounded
 * number of handshakes, each with a deadline, a bounded number of them taken up in one call, and a
 * line in the log now and then. Visitors are remembered by address for that alone.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "comm/comm_stream_private.h"

enum {
    BACKLOG = 512,
    FULL_SECONDS = 1, /* how long a handshake may keep others waiting when all places are taken */
    NEW_A_CALL = 16,  /* connections taken up in one call: the caller's poll loop must go on */
    VISITORS = 64,    /* addresses remembered; the one longest not seen is forgotten */
    FAILURES = 16,    /* refusals within a minute that make an address a suspicious one */
    SUSPICIOUS_SHARE = 8, /* handshakes that a suspicious address may have under way */
    LINES_A_MINUTE = 8,   /* in the log, over all addresses */
};

struct visitor {
    uint8_t address[16];
    double since, seen; /* when the counted minute began, when it last came */
    int failures, silent;
    bool logged;
};

struct handshake {
    struct comm_stream *stream;
    struct visitor *visitor;
    double began;
    bool shaken;
    struct comm_greeting greeting;
};

struct comm_listener {
    int fd;
    uint16_t port;
    struct comm_tls *tls;                             /* NULL: plain */
    struct handshake handshakes[COMM_MAX_HANDSHAKES]; /* oldest first */
    int count;
    struct visitor visitors[VISITORS];
    double minute; /* when the log's minute began */
    int lines;
};

base_status comm_listen(const char *address, uint16_t port, const struct comm_secret *secret,
                        struct comm_listener **listener_p)
{
    struct comm_listener *l = base_calloc(1, sizeof *l);
    struct comm_address at;
    base_status st = BASE_OK;

    *listener_p = NULL;
    l->fd = -1;
    TRY(comm_address_parse(address, port, &at));
    TRY(comm_address_allowed(&at, address, "listening on", secret != NULL));
    TRY(comm_socket_new(&at, &l->fd));
    if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) != 0 ||
        bind(l->fd, (struct sockaddr *)&at.at, at.length) != 0 || listen(l->fd, BACKLOG) != 0 ||
        getsockname(l->fd, (struct sockaddr *)&at.at, &at.length) != 0)
        TRY(base_fail(BASE_ERR_NETWORK, "cannot listen on %s port %u: %m", address, port));
    l->port = ntohs(at.at.ss_family == AF_INET ? ((struct sockaddr_in *)&at.at)->sin_port
                                               : ((struct sockaddr_in6 *)&at.at)->sin6_port);
    if (secret != NULL)
        TRY(comm_tls_new(secret, true, &l->tls));
    *listener_p = l;
    l = NULL;
out:
    comm_listener_close(l);
    return st;
}

void comm_listener_close(struct comm_listener *listener)
{
    if (listener == NULL)
        return;
    for (int i = 0; i < listener->count; i++)
        comm_stream_close(listener->handshakes[i].stream);
    if (listener->fd >= 0)
        close(listener->fd);
    comm_tls_free(listener->tls);
    base_free(listener);
}

uint16_t comm_listener_port(const struct comm_listener *listener)
{
    return listener->port;
}

/* IPv6 visitors are told apart by their network's 64 bits, since one host may use all addresses of
 * a network. */
static void visitor_key(const struct comm_address *from, uint8_t key[16])
{
    memset(key, 0, 16);
    if (from->at.ss_family == AF_INET)
        memcpy(key + 12, &((const struct sockaddr_in *)&from->at)->sin_addr, 4);
    else
        memcpy(key, &((const struct sockaddr_in6 *)&from->at)->sin6_addr, 8);
}

static bool has_handshake(const struct comm_listener *l, const struct visitor *v)
{
    for (int i = 0; i < l->count; i++)
        if (l->handshakes[i].visitor == v)
            return true;
    return false;
}

static struct visitor *visitor_of(struct comm_listener *l, const struct comm_address *from)
{
    struct visitor *oldest = NULL;
    uint8_t key[16];

    visitor_key(from, key);
    for (int i = 0; i < VISITORS; i++) {
        struct visitor *v = &l->visitors[i];

        if (v->seen > 0 && memcmp(v->address, key, sizeof key) == 0)
            return v;
        /* There are more visitors than handshakes, so one without is always found. */
        if (!has_handshake(l, v) && (oldest == NULL || v->seen < oldest->seen))
            oldest = v;
    }
    *oldest = (struct visitor){.since = base_now()};
    memcpy(oldest->address, key, sizeof key);
    return oldest;
}

/* Counts a refusal and logs it, unless this address, or all addresses together, had enough lines in
 * the log this minute. */
static void note_refusal(struct comm_listener *l, struct visitor *v, const char *peer,
                         const char *why)
{
    double now = base_now();

    if (now - v->since > 60) {
        if (v->silent > 0 && l->lines < LINES_A_MINUTE)
            base_warn("refused %d more connections of the address of %s in a minute", v->silent,
                      peer);
        v->since = now;
        v->failures = v->silent = 0;
        v->logged = false;
    }
    if (now - l->minute > 60) {
        l->minute = now;
        l->lines = 0;
    }
    v->failures++;
    if (!v->logged && l->lines < LINES_A_MINUTE) {
        base_warn("refused a connection of %s: %s", peer, why);
        v->logged = true;
        l->lines++;
    } else {
        v->silent++;
    }
}

static struct comm_stream *take_out(struct comm_listener *l, int index)
{
    struct comm_stream *stream = l->handshakes[index].stream;

    l->count--;
    memmove(l->handshakes + index, l->handshakes + index + 1,
            (size_t)(l->count - index) * sizeof *l->handshakes);
    return stream;
}

static void refuse(struct comm_listener *l, int index, const char *why)
{
    struct handshake *h = &l->handshakes[index];

    note_refusal(l, h->visitor, h->stream->peer, why);
    comm_stream_close(take_out(l, index));
}

void comm_refuse(struct comm_listener *listener, struct comm_stream *stream, const char *why)
{
    struct comm_address from = {.length = sizeof from.at};

    if (getpeername(stream->fd, (struct sockaddr *)&from.at, &from.length) == 0)
        note_refusal(listener, visitor_of(listener, &from), stream->peer, why);
    comm_stream_close(stream);
}

/* Makes room for another handshake of a suspicious address by ending its oldest. */
static void limit_share(struct comm_listener *l, const struct visitor *v)
{
    int share = 0, oldest = -1;

    if (v->failures < FAILURES || base_now() - v->since > 60)
        return;
    for (int i = l->count - 1; i >= 0; i--)
        if (l->handshakes[i].visitor == v) {
            share++;
            oldest = i;
        }
    if (share >= SUSPICIOUS_SHARE)
        refuse(l, oldest, "too many at a time after many were refused");
}

static bool take_up(struct comm_listener *l)
{
    struct comm_address from = {.length = sizeof from.at};
    struct handshake *h;
    struct visitor *v;
    int fd;

    if (l->count == COMM_MAX_HANDSHAKES && base_now() - l->handshakes[0].began < FULL_SECONDS)
        return false;
    fd = accept4(l->fd, (struct sockaddr *)&from.at, &from.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return errno == ECONNABORTED || errno == EINTR;
    if (l->count == COMM_MAX_HANDSHAKES)
        refuse(l, 0, "slow while others were waiting");
    v = visitor_of(l, &from);
    v->seen = base_now();
    limit_share(l, v);
    comm_socket_tune(fd);
    h = &l->handshakes[l->count];
    *h = (struct handshake){.visitor = v, .began = v->seen};
    if (comm_stream_of(fd, &h->stream) != BASE_OK) {
        close(fd);
        return true;
    }
    l->count++;
    if (l->tls != NULL && comm_tls_begin(l->tls, h->stream) != BASE_OK)
        refuse(l, l->count - 1, base_message());
    return true;
}

static base_status step(struct comm_listener *l, struct handshake *h, bool *done_p)
{
    base_status st = BASE_OK;

    *done_p = false;
    if (!h->shaken && l->tls != NULL)
        TRY(base_prefix(comm_tls_handshake(h->stream, &h->shaken), "has it another token?"));
    else
        h->shaken = true;
    if (h->shaken)
        TRY(comm_greeting_read(&h->greeting, h->stream, done_p));
    if (!*done_p && base_now() - h->began > COMM_HANDSHAKE_SECONDS)
        TRY(base_fail(BASE_ERR_TIMEOUT, "no hello within %d seconds", COMM_HANDSHAKE_SECONDS));
out:
    return st;
}

base_status comm_accept(struct comm_listener *listener, struct comm_hello *hello_p,
                        struct comm_stream **stream_p)
{
    const bool encrypted = listener->tls != NULL;
    int left = NEW_A_CALL;

    *stream_p = NULL;
    while (left-- > 0 && take_up(listener))
        ;
    for (int i = 0; i < listener->count && *stream_p == NULL;) {
        struct handshake *h = &listener->handshakes[i];
        bool done = false;
        base_status st = step(listener, h, &done);

        if (st == BASE_OK && done)
            st = comm_greeting_to_hello(&h->greeting, encrypted, hello_p);
        if (st == BASE_ERR_PEER_LOST) /* the peer hung up, as our workers do when a view ends */
            comm_stream_close(take_out(listener, i));
        else if (st != BASE_OK)
            refuse(listener, i, base_message());
        else if (done)
            *stream_p = take_out(listener, i);
        else
            i++;
    }
    return BASE_OK;
}

int comm_listener_watch(struct comm_listener *listener, struct pollfd *fds, int room)
{
    int count = 0;

    if (room > 0 && listener->count < COMM_MAX_HANDSHAKES)
        fds[count++] = (struct pollfd){.fd = listener->fd, .events = POLLIN};
    for (int i = 0; i < listener->count && count < room; i++)
        fds[count++] = (struct pollfd){
            .fd = listener->handshakes[i].stream->fd,
            .events = comm_stream_events(listener->handshakes[i].stream, true, false)};
    return count;
}

base_status comm_welcome(struct comm_stream *stream, double deadline)
{
    struct comm_greeting greeting;
    base_status st = BASE_OK;
    bool done = false;

    comm_greeting_welcome(&greeting);
    TRY(comm_greeting_write(&greeting, stream, &done));
    while (!done) {
        TRY(comm_stream_wait(stream, false, true, deadline));
        TRY(comm_greeting_write(&greeting, stream, &done));
    }
out:
    return st;
}
