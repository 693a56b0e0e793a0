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
#include "cluster/dials.h"
#include "cluster/requests.h"
#include "cluster/succession.h"
#include "cluster/worker.h"
#include "comm/mailbox.h"

enum { LINKS = 2 * COMM_MAX_WORKERS, DOORS = 2 };
static const double TICK = 0.1, JOIN_SECONDS = 10, WELCOME_SECONDS = 1, LAST_WORDS_SECONDS = 2;

struct link {
    struct comm_mailbox *box; /* NULL: the entry is free */
    double since;
};

struct cluster_server {
    struct cluster_coordinator *coordinator;
    int own;                            /* index of its host */
    struct comm_listener *doors[DOORS]; /* NULL: no other host may join */
    struct cluster_dials dials;
    struct link links[LINKS];
    bool awaiting_folder; /* events and status wait until the program has told its folder */
    void (*on_folder)(const char *path); /* called then; NULL: not */
    struct base_events *events;
    bool own_events;
    struct cluster_requests *requests; /* NULL: there is no socket to ask at */
    double next_tick;
};

static void make_name(char name[33])
{
    uint8_t random[16];

    if (getrandom(random, sizeof random, 0) != sizeof random)
        abort(); /* cannot happen: the kernel never refuses sixteen bytes */
    for (int i = 0; i < 16; i++)
        snprintf(name + 2 * i, 3, "%02x", random[i]);
}

static base_status listen_for_hosts(struct cluster_server *s, const struct cluster_launch *l)
{
    base_status st = BASE_OK;

    TRY(comm_listen(l->bind, l->port, l->has_secret ? &l->secret : NULL, &s->doors[0]));
    base_info("host 0 listens on %s:%u%s", l->bind, comm_listener_port(s->doors[0]),
              l->has_secret ? "" : ", without a token: for processes of this machine only");
out:
    return st;
}

/* What settings the job's program takes while it runs; NULL: none. */
static cluster_check *check_of(const struct cluster_program *const *programs, const char *name)
{
    for (size_t i = 0; programs != NULL && programs[i] != NULL; i++)
        if (strcmp(programs[i]->name, name) == 0)
            return programs[i]->check;
    return NULL;
}

/* Connects with this host's own agent and takes over fd. */
static base_status begin(struct cluster_server *s, const struct cluster_launch *l, int fd)
{
    base_status st = BASE_OK;
    struct comm_stream *stream = NULL;

    st = comm_stream_of(fd, &stream);
    if (st != BASE_OK)
        close(fd);
    TRY(st);
    s->links[0] = (struct link){comm_mailbox_new(stream), base_now()};
    TRY(cluster_dials_init(&s->dials, l->has_secret ? &l->secret : NULL));
out:
    return st;
}

/* Opens the file of the job's events and the socket that answers `paceline status`. */
static base_status open_outlets(struct cluster_server *s, const struct cluster_setup *setup)
{
    s->events = setup->events;
    if (setup->status == NULL)
        return BASE_OK;
    return cluster_requests_open(setup->status, &s->requests);
}

base_status cluster_server_open(const struct cluster_setup *setup, int fd,
                                struct cluster_server **server_p)
{
    base_status st = BASE_OK;
    struct cluster_server *s = base_calloc(1, sizeof *s);
    const struct cluster_launch *l = &setup->launch;
    char name[33];
    struct cluster_coordinator_setup about = {.name = name,
                                              .program = setup->program,
                                              .job = setup->job,
                                              .check = check_of(setup->programs, setup->program),
                                              .transport = l->transport,
                                              .hosts = l->hosts,
                                              .min_workers = l->min_workers,
                                              .least = setup->least,
                                              .joins = setup->joins,
                                              .restarts = setup->restarts,
                                              .awaits_folder = setup->tells_folder,
                                              .silence = l->silence,
                                              .gather = l->gather};

    *server_p = NULL;
    s->awaiting_folder = setup->tells_folder;
    s->on_folder = setup->on_folder;
    make_name(name);
    s->coordinator = cluster_coordinator_new(&about, base_now());
    TRY(begin(s, l, fd));
    if (l->listens)
        TRY(listen_for_hosts(s, l));
    TRY(open_outlets(s, setup));
    *server_p = s;
    s = NULL;
out:
    cluster_server_close(s);
    return st;
}

/* Listens for hosts that join at the job's port if that is free here, else at its agent's, and says
 * where. */
static void tell_where(struct cluster_server *s, const struct cluster_launch *l,
                       const char *address)
{
    const struct comm_secret *secret = l->has_secret ? &l->secret : NULL;

    if (l->port != 0)
        base_ignore(comm_listen(address, l->port, secret, &s->doors[1]));
    base_warn("host %d at %s:%u coordinates now", s->own, address,
              comm_listener_port(s->doors[1] != NULL ? s->doors[1] : s->doors[0]));
}

base_status cluster_server_succeed(const struct cluster_server_heir *heir, int fd,
                                   struct cluster_server **server_p)
{
    base_status st = BASE_OK;
    struct cluster_server *s = base_calloc(1, sizeof *s);
    const struct cluster_succession *from = heir->succession;
    double now = base_now();

    *server_p = NULL;
    s->own = (int)from->self;
    s->doors[0] = heir->door;
    s->awaiting_folder = from->state.folder;
    s->coordinator = cluster_coordinator_succeed(
        &from->state, check_of(heir->programs, from->state.program), from->self, from->term, now);
    TRY(begin(s, heir->launch, fd));
    if (heir->setup != NULL)
        TRY(open_outlets(s, heir->setup));
    for (int i = 0; i < from->state.host_count; i++)
        if (from->hosts[i].dead)
            cluster_coordinator_dead(s->coordinator, i, now);
    tell_where(s, heir->launch, heir->address);
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
    for (int i = 0; i < DOORS; i++)
        comm_listener_close(s->doors[i]);
    cluster_dials_fini(&s->dials);
    cluster_requests_close(s->requests);
    if (s->own_events && base_events_close(s->events) != BASE_OK)
        base_warn("%s", base_message());
    cluster_coordinator_free(s->coordinator);
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
    if (s->requests != NULL)
        count += cluster_requests_watch(s->requests, fds + count, room - count);
    for (int i = 0; i < DOORS; i++)
        if (s->doors[i] != NULL)
            count += comm_listener_watch(s->doors[i], fds + count, room - count);
    return count + cluster_dials_watch(&s->dials, fds + count, room - count);
}

uint16_t cluster_server_port(const struct cluster_server *s)
{
    return s->doors[0] != NULL ? comm_listener_port(s->doors[0]) : 0;
}

static int free_link(const struct cluster_server *s) /* or LINKS */
{
    int free = 0;

    while (free < LINKS && s->links[free].box != NULL)
        free++;
    return free;
}

static void take_in(struct cluster_server *s, struct comm_listener *door,
                    struct comm_stream *stream, double now)
{
    int free = free_link(s);

    if (free == LINKS) {
        comm_refuse(door, stream, "too many hosts");
    } else if (comm_welcome(stream, now + WELCOME_SECONDS) != BASE_OK) {
        comm_stream_close(stream);
    } else {
        s->links[free] = (struct link){comm_mailbox_new(stream), now};
    }
}

/* An agent may look for the coordinator of another job that had this port before: its `lead` would
 * end this one. A host that joins names no job. */
static bool is_of_another_job(const struct cluster_server *s, const struct comm_hello *hello)
{
    return hello->job[0] != '\0' &&
           strcmp(hello->job, cluster_coordinator_name(s->coordinator)) != 0;
}

static base_status accept_hosts(struct cluster_server *s, struct comm_listener *door, double now)
{
    base_status st = BASE_OK;
    struct comm_stream *stream = NULL;
    struct comm_hello hello;

    while (door != NULL) {
        TRY(comm_accept(door, &hello, &stream));
        if (stream == NULL)
            break;
        if (strcmp(hello.role, "agent") != 0)
            comm_refuse(door, stream, "this port is for agents");
        else if (is_of_another_job(s, &hello))
            comm_refuse(door, stream, "this port is for agents of another job");
        else
            take_in(s, door, stream, now);
    }
out:
    return st;
}

void cluster_server_adopt(struct cluster_server *s, int host, struct comm_mailbox *box)
{
    int link = free_link(s);

    if (link == LINKS || !cluster_coordinator_lead(s->coordinator, host, link)) {
        comm_mailbox_free(box);
        return;
    }
    s->links[link] = (struct link){box, base_now()};
}

/* Connects with agents that the coordinator wants to hear of and has no connection to. */
static void seek_hosts(struct cluster_server *s, double now)
{
    struct comm_hello hello = {.role = "agent", .from = (uint32_t)s->own};
    struct comm_stream *stream;
    const char *address;
    uint16_t port;

    snprintf(hello.job, sizeof hello.job, "%s", cluster_coordinator_name(s->coordinator));
    for (int i = 0; i < cluster_coordinator_hosts(s->coordinator); i++) {
        if (!cluster_coordinator_seeks(s->coordinator, i)) {
            cluster_dials_drop(&s->dials, i);
            continue;
        }
        hello.to = (uint32_t)i;
        address = cluster_coordinator_address(s->coordinator, i, &port);
        switch (cluster_dials_try(&s->dials, address, port, &hello, now, &stream)) {
        case CLUSTER_CONNECTED:
            cluster_server_adopt(s, i, comm_mailbox_new(stream));
            break;
        case CLUSTER_REFUSED:
            cluster_coordinator_dead(s->coordinator, i, now);
            break;
        default:
            break;
        }
    }
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
    /* An agent that does not join, or that stays after it was refused or dismissed, would take the
     * place of others. */
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

/* Moves events and status into the folder that the program has told. If that fails the job goes on
 * without them. */
static void enter_folder(struct cluster_server *s)
{
    const char *folder = cluster_coordinator_folder(s->coordinator);
    char *events, *status;

    if (folder == NULL)
        return;
    s->awaiting_folder = false;
    events = base_format("%s/cluster.jsonl", folder);
    s->own_events = base_events_open(events, &s->events) == BASE_OK;
    if (!s->own_events)
        base_warn("%s", base_message());
    base_free(events);
    status = base_format("%s/status", folder);
    if (cluster_requests_open(status, &s->requests) != BASE_OK)
        base_warn("%s", base_message());
    base_free(status);
    if (s->on_folder != NULL)
        s->on_folder(folder);
}

static void write_events(struct cluster_server *s)
{
    json_t *event;

    while (!s->awaiting_folder && (event = cluster_coordinator_event(s->coordinator)) != NULL) {
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

    for (int i = 0; i < DOORS; i++)
        TRY(accept_hosts(s, s->doors[i], now));
    for (int i = 0; i < LINKS; i++)
        if (s->links[i].box != NULL && read_link(s, i, now) != BASE_OK)
            cut(s, i, now);
    if (now >= s->next_tick) {
        cluster_coordinator_tick(s->coordinator, now);
        s->next_tick = now + TICK;
    }
    seek_hosts(s, now);
    if (s->awaiting_folder)
        enter_folder(s);
    if (s->requests != NULL)
        cluster_requests_step(s->requests, s->coordinator, now);
    send_all(s);
    write_events(s);
    for (int i = 0; i < LINKS; i++) { /* sends what was queued just now without another poll */
        if (s->links[i].box != NULL && comm_mailbox_flush(s->links[i].box, 0) == BASE_ERR_PEER_LOST)
            cut(s, i, now);
    }
out:
    return st;
}
