/* SPDX-License-Identifier: MIT */
#include "cluster/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/coordinator.h"
#include "cluster/status.h"
#include "comm/mailbox.h"

enum { LINKS = 2 * COMM_MAX_WORKERS };
static const double TICK = 0.1, JOIN_SECONDS = 10, WELCOME_SECONDS = 1, LAST_WORDS_SECONDS = 2;

struct link {
    struct comm_mailbox *box; /* NULL: free */
    double since;
};

struct cluster_server {
    struct cluster_coordinator *coordinator;
    struct comm_listener *listener; /* NULL: nobody else may come */
    struct link links[LINKS];
    bool folder; /* … is yet to be told, with what follows */
    struct base_events *events;
    bool own_events;
    char *status_path;
    int status;
    double next_tick;
};

static void make_name(char name[33])
{
    uint8_t random[16];

    if (getrandom(random, sizeof random, 0) != sizeof random)
        abort(); /* cannot happen: sixteen bytes are never refused */
    for (int i = 0; i < 16; i++)
        snprintf(name + 2 * i, 3, "%02x", random[i]);
}

static base_status listen_for_hosts(struct cluster_server *s, const struct cluster_launch *l)
{
    base_status st = BASE_OK;

    TRY(comm_listen(l->bind, l->port, l->has_secret ? &l->secret : NULL, &s->listener));
    base_info("host 0 listens on %s:%u%s", l->bind, comm_listener_port(s->listener),
              l->has_secret ? "" : ", without a token: for processes of this machine only");
out:
    return st;
}

base_status cluster_server_open(const struct cluster_setup *setup, int fd,
                                struct cluster_server **server_p)
{
    base_status st = BASE_OK;
    struct cluster_server *s = base_calloc(1, sizeof *s);
    const struct cluster_launch *l = &setup->launch;
    struct comm_stream *stream = NULL;
    char name[33];
    struct cluster_coordinator_setup about = {.name = name,
                                              .program = setup->program,
                                              .job = setup->job,
                                              .transport = l->transport,
                                              .hosts = l->hosts,
                                              .min_workers = l->min_workers,
                                              .least = setup->least,
                                              .joins = setup->joins,
                                              .restarts = setup->restarts,
                                              .silence = l->silence,
                                              .gather = l->gather};

    *server_p = NULL;
    s->status = -1;
    s->folder = setup->folder;
    s->events = setup->events;
    make_name(name);
    s->coordinator = cluster_coordinator_new(&about, base_now());
    st = comm_stream_of(fd, &stream);
    if (st != BASE_OK)
        close(fd);
    TRY(st);
    s->links[0] = (struct link){comm_mailbox_new(stream), base_now()};
    if (l->listens)
        TRY(listen_for_hosts(s, l));
    if (setup->status != NULL) {
        s->status_path = base_strdup(setup->status);
        TRY(cluster_status_listen(setup->status, &s->status));
    }
    *server_p = s;
    s = NULL;
out:
    cluster_server_close(s);
    return st;
}

void cluster_server_close(struct cluster_server *s)
{
    double deadline = base_now() + LAST_WORDS_SECONDS;

    if (s == NULL)
        return;
    for (int i = 0; i < LINKS; i++) {
        if (s->links[i].box != NULL)
            base_ignore(comm_mailbox_flush(s->links[i].box, deadline));
        comm_mailbox_free(s->links[i].box);
    }
    comm_listener_close(s->listener);
    cluster_status_close(s->status_path, s->status);
    if (s->own_events && base_events_close(s->events) != BASE_OK)
        base_warn("%s", base_message());
    cluster_coordinator_free(s->coordinator);
    base_free(s->status_path);
    base_free(s);
}

bool cluster_server_over(const struct cluster_server *s)
{
    return cluster_coordinator_over(s->coordinator);
}

const json_t *cluster_server_result(const struct cluster_server *s)
{
    return cluster_coordinator_result(s->coordinator);
}

int cluster_server_watch(struct cluster_server *s, struct pollfd *fds, int room)
{
    int count = 0;

    for (int i = 0; i < LINKS && count < room; i++)
        if (s->links[i].box != NULL)
            fds[count++] = (struct pollfd){comm_stream_fd(comm_mailbox_stream(s->links[i].box)),
                                           comm_mailbox_events(s->links[i].box), 0};
    if (s->status >= 0 && count < room)
        fds[count++] = (struct pollfd){s->status, POLLIN, 0};
    if (s->listener != NULL)
        count += comm_listener_watch(s->listener, fds + count, room - count);
    return count;
}

static void take_in(struct cluster_server *s, struct comm_stream *stream, double now)
{
    int free = 0;

    while (free < LINKS && s->links[free].box != NULL)
        free++;
    if (free == LINKS) {
        comm_refuse(s->listener, stream, "too many hosts");
    } else if (comm_welcome(stream, now + WELCOME_SECONDS) != BASE_OK) {
        comm_stream_close(stream);
    } else {
        s->links[free] = (struct link){comm_mailbox_new(stream), now};
    }
}

static base_status accept_hosts(struct cluster_server *s, double now)
{
    base_status st = BASE_OK;
    struct comm_stream *stream = NULL;
    struct comm_hello hello;

    while (s->listener != NULL) {
        TRY(comm_accept(s->listener, &hello, &stream));
        if (stream == NULL)
            break;
        if (strcmp(hello.role, "agent") == 0)
            take_in(s, stream, now);
        else
            comm_refuse(s->listener, stream, "this port is for agents");
    }
out:
    return st;
}

static base_status read_link(struct cluster_server *s, int index, double now)
{
    base_status st = BASE_OK;
    struct cluster_message m;
    bool any;

    for (;;) {
        TRY(cluster_message_receive(s->links[index].box, &m, &any));
        if (!any)
            break;
        st = cluster_coordinator_hear(s->coordinator, index, &m, now);
        cluster_message_fini(&m);
        TRY(st);
    }
    /* One that does not join, or was refused or dismissed and stays, takes the place of others. */
    if (cluster_coordinator_knows(s->coordinator, index))
        s->links[index].since = now;
    else if (now - s->links[index].since > JOIN_SECONDS)
        TRY(base_fail(BASE_ERR_TIMEOUT, "it is of no host"));
out:
    return st;
}

static void cut(struct cluster_server *s, int index, double now)
{
    char why[256];

    if (!cluster_coordinator_over(s->coordinator)) {
        snprintf(why, sizeof why, "was lost: %.200s", base_message());
        cluster_coordinator_gone(s->coordinator, index, why, now);
    }
    comm_mailbox_free(s->links[index].box);
    s->links[index] = (struct link){0};
}

static void send_all(struct cluster_server *s)
{
    struct cluster_message m;
    int link;

    while (cluster_coordinator_next(s->coordinator, &link, &m)) {
        cluster_message_send(s->links[link].box, &m, -1);
        cluster_message_fini(&m);
    }
}

/* The program has said where its files are. What cannot be there costs the job nothing. */
static void enter_folder(struct cluster_server *s)
{
    const char *folder = cluster_coordinator_folder(s->coordinator);
    char *events;

    if (folder == NULL)
        return;
    s->folder = false;
    events = base_format("%s/cluster.jsonl", folder);
    s->own_events = base_events_open(events, &s->events) == BASE_OK;
    if (!s->own_events)
        base_warn("%s", base_message());
    base_free(events);
    s->status_path = base_format("%s/status", folder);
    if (cluster_status_listen(s->status_path, &s->status) != BASE_OK)
        base_warn("%s", base_message());
}

static void write_events(struct cluster_server *s)
{
    json_t *event;

    while (!s->folder && (event = cluster_coordinator_event(s->coordinator)) != NULL) {
        char *text = json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(9));

        base_event(s->events, "%s", text);
        free(text);
        json_decref(event);
    }
}

base_status cluster_server_step(struct cluster_server *s)
{
    base_status st = BASE_OK;
    double now = base_now();

    TRY(accept_hosts(s, now));
    for (int i = 0; i < LINKS; i++)
        if (s->links[i].box != NULL && read_link(s, i, now) != BASE_OK)
            cut(s, i, now);
    if (now >= s->next_tick) {
        cluster_coordinator_tick(s->coordinator, now);
        s->next_tick = now + TICK;
    }
    if (s->folder)
        enter_folder(s);
    if (s->status >= 0) {
        json_t *status = cluster_coordinator_status(s->coordinator, now);

        cluster_status_answer(s->status, status);
        json_decref(status);
    }
    send_all(s);
    write_events(s);
    for (int i = 0; i < LINKS; i++) { /* queued just now: on its way without another poll */
        if (s->links[i].box != NULL && comm_mailbox_flush(s->links[i].box, 0) == BASE_ERR_PEER_LOST)
            cut(s, i, now);
    }
out:
    return st;
}
