/* SPDX-License-Identifier: MIT
 *
 * The hands of an agent's steward: mailboxes, processes, the words and the memory of the host.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/agent_private.h"

static void say(void *agent, const struct cluster_message *m)
{
    struct agent *a = agent;

    cluster_message_send(a->up, m, -1);
}

static void tell(void *agent, int slot, const struct cluster_message *m)
{
    struct agent *a = agent;

    cluster_message_send(a->workers[slot]->box, m, -1);
}

/* ---- processes ---- */

/* The coordinator's order, completed with what only this host knows. The caller must wipe the token
 * in it. */
static json_t *order_for_worker(const struct agent *a, const json_t *order)
{
    json_t *body = json_copy((json_t *)(uintptr_t)order);
    char token[COMM_TOKEN_TEXT];

    /* Workers of a host that is alone share memory, unless a transport was named. */
    if (a->server == NULL || a->launch->listens ||
        json_is_string(json_object_get(order, "transport")))
        json_object_set_new(body, "listen", json_string(a->address));
    json_object_set_new(body, "threads", json_integer(a->threads));
    if (a->launch->has_secret) {
        comm_secret_text(&a->launch->secret, token);
        json_object_set_new(body, "token", json_string(token));
        explicit_bzero(token, sizeof token);
    }
    return body;
}

static base_status start(void *agent, int slot, uint32_t id, const json_t *order)
{
    base_status st = BASE_OK;
    struct agent *a = agent;
    struct cluster_message m = {.type = CLUSTER_JOB,
                                .id = id,
                                .host = a->steward.host,
                                .slot = (uint16_t)slot,
                                .workers = 1};

    TRY(cluster_process_start(id, slot, a->environment, &a->workers[slot]));
    atomic_store(&a->ids[slot], id);
    m.body = order_for_worker(a, order);
    cluster_message_send(a->workers[slot]->box, &m, comm_host_fd(a->words));
    cluster_token_wipe(m.body);
out:
    cluster_message_fini(&m);
    return st;
}

static void kill_worker(void *agent, int slot)
{
    struct agent *a = agent;

    cluster_process_kill(a->workers[slot]);
}

/* Puts the worker's last lines into the message, after a line that says so if the kernel killed it
 * for memory. */
static void word_end(struct agent *a, struct cluster_process *p, struct cluster_message *m)
{
    char text[CLUSTER_TAIL + 160];
    int64_t kills = p->signal == SIGKILL ? cluster_monitor_oom_kills() : -1;
    const char *tail = cluster_process_tail(p);

    if (kills <= a->oom_kills) {
        cluster_message_text(m, tail);
        return;
    }
    a->oom_kills++; /* one kill explains one death */
    snprintf(text, sizeof text,
             "out of memory: the kernel killed worker %u, which had taken %.0f MB%s%s", p->id,
             1e-6 * p->peak_memory, tail[0] != '\0' ? "\n" : "", tail);
    cluster_message_text(m, text);
    base_warn(
        "out of memory: the kernel killed worker %u, which had taken %.0f MB; smaller batches "
        "(--batch, --accumulate) or fewer workers need less",
        p->id, 1e-6 * p->peak_memory);
}

void cluster_agent_bury(struct agent *a, struct cluster_process *p)
{
    struct cluster_message m = {.type = CLUSTER_EXITED,
                                .id = p->id,
                                .pid = p->pid < 0 ? -p->pid : p->pid,
                                .code = p->code,
                                .signal = p->signal};

    word_end(a, p, &m);
    cluster_steward_bury(&a->steward, p->slot, &m);
    pthread_mutex_lock(&a->burial);
    atomic_store(&a->ids[p->slot], 0);
    atomic_fetch_and(&a->dead, ~(UINT64_C(1) << p->slot));
    comm_host_clear(a->words, p->slot);
    pthread_mutex_unlock(&a->burial);
    a->workers[p->slot] = NULL;
    cluster_process_close(p);
}

/* ---- the host's words and memory ---- */

static void watch(void *agent, const struct comm_view *view, uint64_t slots)
{
    struct agent *a = agent;

    for_each_worker(a, p)
        p->speaks = a->one_speaks && comm_view_rank(view, p->id) == 0;
    atomic_store(&a->view_number, view->number);
    atomic_store(&a->members, slots);
}

/* The watching thread may have raised the alarm already. */
static void lost(void *agent, int slot)
{
    struct agent *a = agent;
    uint64_t bit = UINT64_C(1) << slot;

    if ((atomic_fetch_and(&a->members, ~bit) & bit) != 0)
        comm_host_alarm(a->words, atomic_load(&a->view_number), a->workers[slot]->id);
}

static void alarm_host(void *agent, uint32_t view, uint32_t id)
{
    struct agent *a = agent;

    comm_host_alarm(a->words, view, id);
}

static void give_region(void *agent, int slot, const struct cluster_message *m)
{
    struct agent *a = agent;
    struct cluster_message answer = {.type = CLUSTER_REGION, .bytes = m->bytes};
    int fd = -1;

    memcpy(answer.key, m->key, sizeof answer.key);
    answer.code = (int)cluster_regions_get(&a->regions, m->key, m->bytes, &fd);
    if (answer.code != BASE_OK)
        cluster_message_text(&answer, base_message());
    cluster_message_send(a->workers[slot]->box, &answer, fd);
}

static void forget_regions(void *agent, uint32_t oldest_view)
{
    struct agent *a = agent;

    cluster_regions_forget(&a->regions, oldest_view);
}

static bool measure(void *agent, int slot, double now, struct cluster_load *load)
{
    struct agent *a = agent;
    struct cluster_process *p = slot >= 0 ? a->workers[slot] : NULL;

    if (slot < 0) {
        cluster_monitor_host(&a->monitor, load);
        return true;
    }
    if (p->pid <= 0)
        return false;
    cluster_monitor_process(&p->monitor, p->pid, now, load);
    cluster_monitor_step(&p->monitor, load->step, now, load);
    return true;
}

/* ---- other agents ---- */

static void send_agent(void *agent, uint32_t host, bool answer, const struct cluster_message *m)
{
    struct agent *a = agent;

    if (a->peers != NULL)
        cluster_peers_send(a->peers, host, answer, m);
}

static void drop(void *agent)
{
    struct agent *a = agent;

    comm_mailbox_free(a->old);
    a->old = a->up;
    a->up = NULL;
}

/* Tells the old coordinator, in case it was only asleep: when it wakes up it stops coordinating. */
static void tell_old(struct agent *a, uint32_t host)
{
    const struct cluster_message m = {
        .type = CLUSTER_LEAD, .host = host, .term = a->steward.succession.term};

    if (a->old == NULL)
        return;
    cluster_message_send(a->old, &m, -1);
    base_ignore(comm_mailbox_flush(a->old, 0));
    comm_mailbox_free(a->old);
    a->old = NULL;
}

/* Begins to coordinate; the connections to the agents that voted go to the new coordinator. */
static base_status lead(struct agent *a)
{
    base_status st = BASE_OK;
    const struct cluster_succession *s = &a->steward.succession;
    struct cluster_server_heir heir = {.succession = s,
                                       .launch = a->launch,
                                       .setup = a->setup,
                                       .programs = a->programs,
                                       .address = a->address};
    struct comm_stream *stream = NULL;
    int pair[2] = {-1, -1};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot make a pair of sockets: %m"));
    heir.door = cluster_peers_take_listener(a->peers);
    TRY(cluster_server_succeed(&heir, pair[1], &a->server));
    TRY(comm_stream_of(pair[0], &stream));
    pair[0] = -1;
    a->up = comm_mailbox_new(stream);
    for (uint32_t i = 0; i < (uint32_t)s->state.host_count; i++) {
        struct comm_mailbox *box = cluster_peers_take(a->peers, i, false);

        if (box != NULL)
            cluster_server_adopt(a->server, (int)i, box);
    }
out:
    if (pair[0] >= 0)
        close(pair[0]);
    return st;
}

static base_status follow(void *agent, uint32_t host, double now)
{
    struct agent *a = agent;
    const struct cluster_state_host *h = &a->steward.succession.state.hosts[host];

    (void)now;
    if (a->up != NULL)
        drop(a);
    tell_old(a, host);
    a->told_stop = false; /* the lost coordinator may not have passed on a person's wish to stop */
    snprintf(a->steward.coordinator, sizeof a->steward.coordinator, "host %u (%s)", host,
             h->address);
    if (host == a->steward.host)
        return lead(a);
    a->up = cluster_peers_take(a->peers, host, true);
    base_info("host %u at %s coordinates now", host, h->address);
    return a->up != NULL ? BASE_OK : base_fail(BASE_ERR_PEER_LOST, "host %u is gone", host);
}

const struct cluster_hands cluster_agent_hands = {
    .say = say,
    .tell = tell,
    .start = start,
    .kill = kill_worker,
    .watch = watch,
    .lost = lost,
    .alarm = alarm_host,
    .give_region = give_region,
    .forget_regions = forget_regions,
    .measure = measure,
    .send = send_agent,
    .drop = drop,
    .follow = follow,
};
