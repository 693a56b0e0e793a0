/* SPDX-License-Identifier: MIT
 *
 * Between hosts: a connection for each pair of ranks and channel (comm/link.h), under TLS where the
 * job has a secret. The higher rank connects to the lower one's listener; its hello names job,
 * view, both ids and the channel, so what is led astray or late is refused. Connections of
 * COMM_COLLECTIVES are made when the group opens, the others when both ranks have first use for
 * them. A refused connection is tried again until the group's deadline or a loss: the peer may
 * still be in the view before.
 */
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_private.h"
#include "comm/comm_stream_private.h"
#include "comm/link.h"

enum { WATCHES = COMM_MAX_WORKERS * COMM_CHANNELS + COMM_MAX_HANDSHAKES + 1 };

static const double retry_seconds = 0.02, look_seconds = 0.5;
/* A link counts as cut once the kernel has sent the same bytes again so often without an
 * acknowledgement (after 0.2, 0.6 and 1.4 s between near hosts; after 1, 3 and 7 s while a
 * connection is being made). A peer that is alive but does not read still acknowledges. */
static const uint8_t cut_after_retransmits = 3;

struct mesh_link {
    struct comm_link link;
    int peer;
    bool wanted;
    struct comm_connecting *connecting;
    double retry_at;
};

struct tcp {
    struct comm_group *group;
    int16_t index_of[COMM_MAX_WORKERS]; /* peer → its first link; -1: not reached by tcp */
    struct comm_tls *tls;               /* NULL: plain */
    struct mesh_link *links;
    int count, missing; /* links; those that are wanted and not connected */
    double looked_at;
};

static bool tcp_reaches(const struct comm_group *group, int peer)
{
    return group->view.members[peer].port != 0 && group->endpoint->listener != NULL;
}

/* --- connections --------------------------------------------------------------------------- */

static void tcp_want(struct tcp *t, struct mesh_link *l)
{
    t->missing += !l->wanted && l->link.stream == NULL;
    l->wanted = true;
}

static void tcp_connected(struct tcp *t, struct mesh_link *l, struct comm_stream *stream)
{
    l->link.stream = stream;
    t->missing -= l->wanted;
}

static void tcp_accuse(struct tcp *t, const struct mesh_link *l)
{
    t->group->lost = t->group->view.members[l->peer].id;
}

static base_status tcp_begin(struct tcp *t, struct mesh_link *l)
{
    const struct comm_endpoint_setup *setup = &t->group->endpoint->setup;
    const struct comm_member *to = &t->group->view.members[l->peer];
    struct comm_hello hello = {.role = "data",
                               .from = setup->id,
                               .to = to->id,
                               .view = t->group->view.number,
                               .channel = (uint16_t)l->link.channel};

    snprintf(hello.job, sizeof hello.job, "%s", setup->job);
    return comm_connecting_new(to->address, to->port, t->tls, &hello, &l->connecting);
}

static base_status tcp_reach(struct tcp *t, struct mesh_link *l)
{
    struct comm_stream *stream = NULL;
    base_status st = BASE_OK;

    if (l->connecting == NULL && base_now() < l->retry_at)
        return BASE_OK;
    if (l->connecting == NULL)
        TRY(tcp_begin(t, l));
    TRY(comm_connecting_step(l->connecting, &stream));
    if (stream != NULL)
        tcp_connected(t, l, stream);
out:
    if (st != BASE_OK || stream != NULL) {
        comm_connecting_free(l->connecting);
        l->connecting = NULL;
    }
    l->retry_at = base_now() + retry_seconds;
    /* No process listens there yet, or it refused: the next attempt may succeed. */
    return st == BASE_ERR_IO || st == BASE_ERR_NETWORK ? BASE_OK : st;
}

/* The link that a hello asks for, or NULL with a reason, which is "" for a hello that is only early
 * or late. */
static struct mesh_link *tcp_link_of(const struct tcp *t, const struct comm_hello *hello,
                                     const char **why)
{
    const struct comm_group *group = t->group;
    int peer = comm_view_rank(&group->view, hello->from);
    struct mesh_link *l = NULL;

    if (strcmp(hello->job, group->endpoint->job) != 0 || strcmp(hello->role, "data") != 0)
        *why = "it is for another job";
    else if (hello->to != group->endpoint->setup.id)
        *why = "it is for another worker";
    else if (hello->view != group->view.number)
        *why = "";
    else if (peer <= group->rank || t->index_of[peer] < 0)
        *why = "that worker does not connect to this one";
    else if ((l = &t->links[t->index_of[peer] + hello->channel])->link.stream != NULL)
        *why = "that worker is connected already";
    else
        return l;
    return NULL;
}

static base_status tcp_receive_callers(struct tcp *t)
{
    struct comm_listener *listener = t->group->endpoint->listener;
    struct comm_stream *stream = NULL;
    struct comm_hello hello;
    base_status st = BASE_OK;

    do {
        struct mesh_link *l;
        const char *why = "";

        TRY(comm_accept(listener, &hello, &stream));
        if (stream == NULL)
            break;
        l = tcp_link_of(t, &hello, &why);
        if (l != NULL && comm_welcome(stream, base_now() + 1) == BASE_OK)
            tcp_connected(t, l, stream);
        else if (*why != '\0')
            comm_refuse(listener, stream, why);
        else
            comm_stream_close(stream);
    } while (true);
out:
    return st;
}

static base_status tcp_connect_more(struct tcp *t)
{
    base_status st = BASE_OK;

    TRY(tcp_receive_callers(t));
    for (int i = 0; i < t->count; i++) {
        struct mesh_link *l = &t->links[i];

        if (l->wanted && l->link.stream == NULL && l->peer < t->group->rank)
            TRY(tcp_reach(t, l));
    }
out:
    return st;
}

/* --- waiting ------------------------------------------------------------------------------- */

static int tcp_watch(void *state, struct pollfd *fds, int room)
{
    struct tcp *t = state;
    int count = 0;

    for (int i = 0; i < t->count && count < room; i++) {
        const struct mesh_link *l = &t->links[i];

        if (l->link.stream != NULL && comm_link_busy(&l->link))
            fds[count++] = comm_link_watch(&l->link);
        else if (l->connecting != NULL)
            fds[count++] = comm_connecting_watch(l->connecting);
    }
    if (t->missing > 0)
        count += comm_listener_watch(t->group->endpoint->listener, fds + count, room - count);
    return count;
}

static void tcp_sleep(void *state, double deadline)
{
    struct tcp *t = state;
    struct pollfd fds[1 + WATCHES];
    double seconds = fmin(deadline - base_now(), t->missing > 0 ? retry_seconds : look_seconds);
    int count = 1 + tcp_watch(t, fds + 1, WATCHES);

    comm_group_doze(t->group, fds, count, fmax(seconds, 0));
}

/* --- a group's life ------------------------------------------------------------------------ */

static void tcp_close(void *state)
{
    struct tcp *t = state;

    if (t == NULL)
        return;
    for (int i = 0; i < t->count; i++) {
        comm_link_fini(&t->links[i].link);
        comm_connecting_free(t->links[i].connecting);
    }
    comm_tls_free(t->tls);
    base_free(t->links);
    base_free(t);
}

static struct tcp *tcp_make(struct comm_group *group, const int *peers, int count)
{
    struct tcp *t = base_calloc(1, sizeof *t);

    t->group = group;
    t->count = count * COMM_CHANNELS;
    t->links = base_calloc((size_t)t->count, sizeof *t->links);
    memset(t->index_of, -1, sizeof t->index_of);
    for (int i = 0; i < t->count; i++) {
        struct mesh_link *l = &t->links[i];

        comm_link_init(&l->link, group->view.number, (enum comm_channel)(i % COMM_CHANNELS));
        l->peer = peers[i / COMM_CHANNELS];
        if (l->link.channel == COMM_COLLECTIVES) {
            t->index_of[l->peer] = (int16_t)i;
            tcp_want(t, l);
        }
    }
    return t;
}

static base_status tcp_give_up_opening(struct tcp *t)
{
    char names[256];
    uint64_t ranks = 0;

    for (int i = t->count - 1; i >= 0; i--) {
        const struct mesh_link *l = &t->links[i];

        if (l->wanted && l->link.stream == NULL) {
            ranks |= UINT64_C(1) << l->peer;
            tcp_accuse(t, l);
        }
    }
    comm_group_name(t->group, ranks, names, sizeof names);
    return base_fail(BASE_ERR_TIMEOUT, "view %u: no connection with %s in time",
                     t->group->view.number, names);
}

/* The socket of a link that is connected or being connected; -1: there is none. In the first view a
 * host that never answers is not a cut link but a firewall, which a person must hear about, so
 * there the group's deadline decides. */
static int tcp_socket_of(const struct tcp *t, const struct mesh_link *l)
{
    if (l->link.stream != NULL)
        return comm_stream_fd(l->link.stream);
    if (l->connecting != NULL && t->group->view.number > 1)
        return comm_connecting_watch(l->connecting).fd;
    return -1;
}

static base_status tcp_look_for_cut(struct tcp *t)
{
    double now = base_now();

    if (now - t->looked_at < look_seconds)
        return BASE_OK;
    t->looked_at = now;
    for (int i = 0; i < t->count; i++) {
        const struct mesh_link *l = &t->links[i];
        struct tcp_info info = {0};
        socklen_t length = sizeof info;
        char name[256];

        if (getsockopt(tcp_socket_of(t, l), IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
            info.tcpi_unacked > 0 && info.tcpi_retransmits >= cut_after_retransmits) {
            tcp_accuse(t, l);
            t->group->cut = true;
            comm_group_name(t->group, UINT64_C(1) << l->peer, name, sizeof name);
            return base_fail(BASE_ERR_PEER_LOST, "%s has acknowledged nothing for %u ms", name,
                             info.tcpi_last_ack_recv);
        }
    }
    return BASE_OK;
}

static base_status tcp_open(struct comm_group *group, const int *peers, int count, double deadline,
                            void **state_p)
{
    struct tcp *t = tcp_make(group, peers, count);
    base_status st = BASE_OK;

    *state_p = NULL;
    if (group->endpoint->setup.secret != NULL)
        TRY(comm_tls_new(group->endpoint->setup.secret, false, &t->tls));
    TRY(tcp_connect_more(t));
    while (t->missing > 0) {
        if (base_now() >= deadline)
            TRY(tcp_give_up_opening(t));
        tcp_sleep(t, deadline);
        TRY(comm_group_check(group));
        TRY(tcp_connect_more(t));
        TRY(tcp_look_for_cut(t));
    }
    *state_p = t;
    t = NULL;
out:
    tcp_close(t);
    return st;
}

/* --- requests ------------------------------------------------------------------------------ */

static void tcp_post(void *state, struct comm_request *request)
{
    struct tcp *t = state;
    struct mesh_link *l = &t->links[t->index_of[request->peer] + (int)request->channel];
    bool first = request->sends && l->link.out.first == NULL, moved = false;

    tcp_want(t, l);
    comm_link_post(&l->link, request);
    /* What fits into the socket is sent at once, so that a sender that goes on computing need not
     * wait first. A failure comes back in tcp_progress. */
    if (first && l->link.stream != NULL)
        base_ignore(comm_link_send(&l->link, &moved));
}

static bool tcp_busy(const void *state)
{
    const struct tcp *t = state;

    for (int i = 0; i < t->count; i++)
        if (comm_link_busy(&t->links[i].link))
            return true;
    return false;
}

static base_status tcp_progress(void *state, bool *moved_p)
{
    struct tcp *t = state;
    base_status st = BASE_OK;

    *moved_p = false;
    if (t->missing > 0)
        TRY(tcp_connect_more(t));
    for (int i = 0; i < t->count; i++) {
        struct comm_link *link = &t->links[i].link;

        if (link->stream == NULL)
            continue;
        if (link->out.first != NULL)
            st = comm_link_send(link, moved_p);
        if (st == BASE_OK && link->in.first != NULL)
            st = comm_link_receive(link, moved_p);
        if (st != BASE_OK)
            tcp_accuse(t, &t->links[i]);
        TRY(st);
    }
    if (!*moved_p)
        TRY(tcp_look_for_cut(t));
out:
    return st;
}

static uint64_t tcp_bytes_sent(const void *state)
{
    const struct tcp *t = state;
    uint64_t bytes = 0;

    for (int i = 0; i < t->count; i++)
        bytes += t->links[i].link.bytes_sent;
    return bytes;
}

/* Connections of collectives are made when the group opens, and stay: any thread may look. */
static bool tcp_sending(const void *state, int peer, double *seconds_p, double *bytes_p)
{
    const struct tcp *t = state;

    return comm_stream_sending(t->links[t->index_of[peer]].link.stream, seconds_p, bytes_p);
}

const struct comm_transport comm_transport_tcp = {
    .name = "tcp",
    .help = "sockets, between hosts; TLS 1.3 where the job has a token",
    .can = COMM_CAN_RECOVER,
    .rank = 1,
    .reaches = tcp_reaches,
    .open = tcp_open,
    .close = tcp_close,
    .post = tcp_post,
    .busy = tcp_busy,
    .progress = tcp_progress,
    .sleep = tcp_sleep,
    .watch = tcp_watch,
    .bytes_sent = tcp_bytes_sent,
    .sending = tcp_sending,
};
