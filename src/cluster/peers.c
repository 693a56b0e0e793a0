/* SPDX-License-Identifier: MIT */
#include "cluster/peers.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/dials.h"

static const double WELCOME_SECONDS = 1;

struct cluster_peers {
    struct comm_listener *listener;
    struct cluster_dials dials;
    /* By host: connections that the other host has opened, and those that this one has. */
    struct comm_mailbox *theirs[CLUSTER_MAX_HOSTS], *own[CLUSTER_MAX_HOSTS];
};

base_status cluster_peers_open(const struct cluster_launch *l, const char *address,
                               struct cluster_peers **peers_p)
{
    base_status st = BASE_OK;
    struct cluster_peers *p = base_calloc(1, sizeof *p);
    const struct comm_secret *secret = l->has_secret ? &l->secret : NULL;

    *peers_p = NULL;
    TRY(cluster_dials_init(&p->dials, secret));
    TRY(comm_listen(address, 0, secret, &p->listener));
    *peers_p = p;
    p = NULL;
out:
    cluster_peers_close(p);
    return st;
}

static void drop(struct comm_mailbox **box)
{
    comm_mailbox_free(*box);
    *box = NULL;
}

void cluster_peers_close(struct cluster_peers *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < CLUSTER_MAX_HOSTS; i++) {
        drop(&p->theirs[i]);
        drop(&p->own[i]);
    }
    cluster_dials_fini(&p->dials);
    comm_listener_close(p->listener);
    base_free(p);
}

uint16_t cluster_peers_port(const struct cluster_peers *p)
{
    return comm_listener_port(p->listener);
}

static int watch_boxes(struct comm_mailbox *const *boxes, struct pollfd *fds, int room)
{
    int count = 0;

    for (int i = 0; i < CLUSTER_MAX_HOSTS && count < room; i++)
        if (boxes[i] != NULL)
            fds[count++] = (struct pollfd){comm_stream_fd(comm_mailbox_stream(boxes[i])),
                                           comm_mailbox_events(boxes[i]), 0};
    return count;
}

int cluster_peers_watch(struct cluster_peers *p, struct pollfd *fds, int room)
{
    int count = watch_boxes(p->theirs, fds, room);

    count += watch_boxes(p->own, fds + count, room - count);
    count += cluster_dials_watch(&p->dials, fds + count, room - count);
    if (p->listener != NULL)
        count += comm_listener_watch(p->listener, fds + count, room - count);
    return count;
}

/* Accepts only agents of this job that mean this host. A host's newer connection replaces its older
 * one. */
static void accept_agents(struct cluster_peers *p, const struct cluster_succession *s, double now)
{
    struct comm_stream *stream = NULL;
    struct comm_hello hello;

    for (;;) {
        if (comm_accept(p->listener, &hello, &stream) != BASE_OK)
            base_warn("%s", base_message());
        if (stream == NULL)
            break;
        if (strcmp(hello.role, "agent") != 0 || s->state.name[0] == '\0' ||
            strcmp(hello.job, s->state.name) != 0 || hello.to != s->self || hello.from == s->self ||
            hello.from >= CLUSTER_MAX_HOSTS) {
            comm_refuse(p->listener, stream, "this port is for agents of another job or host");
        } else if (comm_welcome(stream, now + WELCOME_SECONDS) != BASE_OK) {
            comm_stream_close(stream);
        } else {
            drop(&p->theirs[hello.from]);
            p->theirs[hello.from] = comm_mailbox_new(stream);
        }
    }
}

static void dial(struct cluster_peers *p, struct cluster_steward *steward, uint32_t host,
                 double now)
{
    const struct cluster_succession *s = &steward->succession;
    struct comm_hello hello = {.role = "agent", .from = s->self, .to = host};
    struct comm_stream *stream;

    snprintf(hello.job, sizeof hello.job, "%s", s->state.name);
    switch (cluster_dials_try(&p->dials, s->state.hosts[host].address, s->state.hosts[host].port,
                              &hello, now, &stream)) {
    case CLUSTER_CONNECTED:
        p->own[host] = comm_mailbox_new(stream);
        cluster_steward_opened(steward, host, now);
        break;
    case CLUSTER_REFUSED:
        cluster_steward_dead(steward, host, now);
        break;
    default:
        break;
    }
}

/* Hears what has come, until the steward has taken over the box or the connection is closed. */
static void read_box(struct comm_mailbox **box, struct cluster_steward *steward, uint32_t host,
                     double now)
{
    struct comm_mailbox *mine = *box;
    struct cluster_message m;
    base_status st = BASE_OK;
    bool any = true;

    while (any && st == BASE_OK && *box == mine) {
        st = cluster_message_receive(mine, &m, &any);
        if (st != BASE_OK || !any)
            break;
        st = cluster_steward_hear_agent(steward, host, &m, now);
        cluster_message_fini(&m);
    }
    if (st != BASE_OK && *box == mine)
        drop(box);
}

void cluster_peers_step(struct cluster_peers *p, struct cluster_steward *steward, double now)
{
    const struct cluster_succession *s = &steward->succession;

    if (p->listener == NULL) /* this host was to lead and failed to */
        return;
    accept_agents(p, s, now);
    for (uint32_t i = 0; i < CLUSTER_MAX_HOSTS && p->listener != NULL; i++) {
        if (p->theirs[i] != NULL)
            read_box(&p->theirs[i], steward, i, now);
        if (p->own[i] != NULL) {
            read_box(&p->own[i], steward, i, now);
            if (p->own[i] == NULL && p->listener != NULL)
                cluster_steward_closed(steward, i);
        }
        if (p->listener != NULL && p->own[i] == NULL && cluster_succession_wants(s, i))
            dial(p, steward, i, now);
    }
    for (uint32_t i = 0; i < CLUSTER_MAX_HOSTS && p->listener != NULL; i++) {
        if (s->stage == CLUSTER_FOLLOWING && p->own[i] != NULL) { /* there is a coordinator */
            drop(&p->own[i]);
            cluster_steward_closed(steward, i);
        }
        if (p->theirs[i] != NULL)
            base_ignore(comm_mailbox_flush(p->theirs[i], 0));
        if (p->own[i] != NULL)
            base_ignore(comm_mailbox_flush(p->own[i], 0));
    }
}

void cluster_peers_send(struct cluster_peers *p, uint32_t host, bool answer,
                        const struct cluster_message *m)
{
    cluster_message_send(answer ? p->theirs[host] : p->own[host], m, -1);
}

struct comm_mailbox *cluster_peers_take(struct cluster_peers *p, uint32_t host, bool theirs)
{
    struct comm_mailbox **at = theirs ? &p->theirs[host] : &p->own[host], *box = *at;

    *at = NULL;
    return box;
}

struct comm_listener *cluster_peers_take_listener(struct cluster_peers *p)
{
    struct comm_listener *listener = p->listener;

    p->listener = NULL;
    return listener;
}
