/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/agent_private.h"

/* Workers may take so long to save when the coordinator is gone. */
static const double SAVING = 30.0;

void cluster_agent_say(struct agent *a, const struct cluster_message *m)
{
    cluster_message_send(a->up, m, -1);
}

static void tell_workers(struct agent *a, const struct cluster_message *m)
{
    for_each_worker(a, p)
        cluster_message_send(p->box, m, -1);
}

void cluster_agent_lose(struct agent *a, struct cluster_process *p, const char *why)
{
    struct cluster_message m = {.type = CLUSTER_LOST, .peer = p->id, .view = a->view.number};
    uint64_t bit = UINT64_C(1) << p->slot;

    if (p->lost || p->done)
        return;
    p->lost = true;
    if ((atomic_fetch_and(&a->members, ~bit) & bit) != 0)
        comm_host_alarm(a->words, a->view.number, p->id);
    cluster_message_text(&m, why);
    cluster_agent_say(a, &m);
}

/* Its last lines; before them, where the kernel killed it for memory, a line that says so. */
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
    cluster_agent_lose(a, p, "died");
    cluster_agent_say(a, &m);
    pthread_mutex_lock(&a->burial);
    atomic_store(&a->ids[p->slot], 0);
    atomic_fetch_and(&a->dead, ~(UINT64_C(1) << p->slot));
    comm_host_clear(a->words, p->slot);
    pthread_mutex_unlock(&a->burial);
    a->workers[p->slot] = NULL;
    cluster_process_close(p);
}

/* ---- workers ---- */

static void give_region(struct agent *a, struct cluster_process *p, const struct cluster_message *m)
{
    struct cluster_message answer = {.type = CLUSTER_REGION, .bytes = m->bytes};
    int fd = -1;

    memcpy(answer.key, m->key, sizeof answer.key);
    answer.code = (int)cluster_regions_get(&a->regions, m->key, m->bytes, &fd);
    if (answer.code != BASE_OK)
        cluster_message_text(&answer, base_message());
    cluster_message_send(p->box, &answer, fd);
}

/* Shared memory of views in which no worker of this host works any more. */
static void forget_regions(struct agent *a)
{
    uint32_t oldest = a->view.number;

    for_each_worker(a, p)
        if (p->view != 0 && p->view < oldest)
            oldest = p->view;
    cluster_regions_forget(&a->regions, oldest);
}

base_status cluster_agent_hear_worker(struct agent *a, struct cluster_process *p,
                                      const struct cluster_message *m)
{
    p->heard = base_now();
    switch (m->type) {
    case CLUSTER_HEARTBEAT: /* goes on with the agent's next one */
        p->view = m->view;
        p->load.step = m->load.step;
        forget_regions(a);
        return BASE_OK;
    case CLUSTER_REGION:
        give_region(a, p, m);
        return BASE_OK;
    case CLUSTER_RESULT:
        p->done = true;
        atomic_fetch_and(&a->members, ~(UINT64_C(1) << p->slot));
        break;
    case CLUSTER_FAILED:
        if (a->up == NULL) /* there is no coordinator that would tell of it */
            base_relay("worker %u: %s", p->id, m->text);
        break;
    case CLUSTER_READY:
    case CLUSTER_SUSPECT:
    case CLUSTER_FOLDER:
        break;
    default:
        return base_fail(BASE_ERR_DATA, "a worker does not say '%s'", cluster_type_name(m->type));
    }
    if (m->id != p->id)
        return base_fail(BASE_ERR_DATA, "worker %u speaks for worker %u", p->id, m->id);
    cluster_agent_say(a, m);
    return BASE_OK;
}

/* ---- the coordinator ---- */

static base_status start_worker(struct agent *a, uint32_t id, const json_t *body)
{
    base_status st = BASE_OK;
    struct cluster_message m = {.type = CLUSTER_JOB, .id = id, .host = a->host, .workers = 1};
    struct cluster_process *p;
    int slot = 0;

    while (slot < COMM_MAX_WORKERS && a->workers[slot] != NULL)
        slot++;
    if (slot == COMM_MAX_WORKERS)
        TRY(base_fail(BASE_ERR_DATA, "more than %d workers on a host", COMM_MAX_WORKERS));
    TRY(cluster_process_start(id, slot, a->environment, &p));
    a->workers[slot] = p;
    atomic_store(&a->ids[slot], id);
    p->heard = INFINITY; /* until it has spoken the coordinator waits for it, --gather seconds */
    m.slot = (uint16_t)slot;
    m.body = (json_t *)(uintptr_t)body;
    cluster_message_send(p->box, &m, comm_host_fd(a->words));
out:
    return st;
}

/* As if it had died at once; the coordinator decides what that means. */
static void say_not_started(struct agent *a, uint32_t id)
{
    struct cluster_message m = {.type = CLUSTER_EXITED, .id = id, .code = 1};

    cluster_message_text(&m, base_message());
    cluster_agent_say(a, &m);
}

/* Workers of a host that is alone share memory, unless a transport was named. */
static bool workers_listen(const struct agent *a, const json_t *order)
{
    return a->server == NULL || a->launch->listens ||
           json_is_string(json_object_get(order, "transport"));
}

static base_status hear_job(struct agent *a, const struct cluster_message *m)
{
    base_status st = BASE_OK;
    json_t *body = json_copy(m->body);
    char token[COMM_TOKEN_TEXT];

    if (m->body == NULL || (a->order != NULL && m->host != a->host))
        TRY(base_fail(BASE_ERR_DATA, "the coordinator sent no job, or another host's"));
    json_decref(a->order); /* the same again, for one that takes the place of a dead worker */
    a->order = json_incref(m->body);
    a->host = m->host;
    TRY(base_json_real(m->body, "silence", &a->silence));
    if (workers_listen(a, m->body))
        json_object_set_new(body, "listen", json_string(a->address));
    json_object_set_new(body, "threads", json_integer(a->threads));
    if (a->launch->has_secret) {
        comm_secret_text(&a->launch->secret, token);
        json_object_set_new(body, "token", json_string(token));
        explicit_bzero(token, sizeof token);
    }
    for (int i = 0; i < m->workers; i++)
        if (start_worker(a, m->id + (uint32_t)i, body) != BASE_OK)
            say_not_started(a, m->id + (uint32_t)i);
out:
    cluster_token_wipe(body);
    json_decref(body);
    return st;
}

static void hear_view(struct agent *a, const struct cluster_message *m)
{
    uint64_t members = 0;

    a->view = m->members;
    for_each_worker(a, p)
        p->speaks = a->one_speaks && comm_view_rank(&a->view, p->id) == 0;
    for_each_worker(a, p)
        if (!p->lost && !p->done && comm_view_rank(&a->view, p->id) >= 0)
            members |= UINT64_C(1) << p->slot;
    atomic_store(&a->view_number, a->view.number);
    atomic_store(&a->members, members);
    tell_workers(a, m);
}

static void hear_kill(struct agent *a, const struct cluster_message *m)
{
    for_each_worker(a, p)
        if (p->id == m->id)
            cluster_process_kill(p);
}

static void hear_end(struct agent *a, const struct cluster_message *m)
{
    a->ended = true;
    a->blamed = m->id;
    a->code = m->code <= BASE_ERR_INTERNAL ? (base_code)m->code : BASE_ERR_INTERNAL;
    snprintf(a->words_of_end, sizeof a->words_of_end, "%s", m->text);
}

base_status cluster_agent_hear_coordinator(struct agent *a, const struct cluster_message *m)
{
    a->heard = base_now();
    switch (m->type) {
    case CLUSTER_HEARTBEAT:
        return BASE_OK;
    case CLUSTER_JOB:
        return hear_job(a, m);
    case CLUSTER_VIEW:
        hear_view(a, m);
        return BASE_OK;
    case CLUSTER_LOST:
        comm_host_alarm(a->words, m->view, m->peer);
        tell_workers(a, m);
        return BASE_OK;
    case CLUSTER_KILL:
        hear_kill(a, m);
        return BASE_OK;
    case CLUSTER_STOP:
        if (m->code == 0 || m->code == BASE_ERR_PEER_LOST) /* END tells of other failures */
            base_info("%s: %s", m->code == 0 ? "stopping" : "the job has failed", m->text);
        tell_workers(a, m);
        return BASE_OK;
    case CLUSTER_END:
        hear_end(a, m);
        return BASE_OK;
    default:
        return base_fail(BASE_ERR_DATA, "a coordinator does not say '%s'",
                         cluster_type_name(m->type));
    }
}

void cluster_agent_lose_coordinator(struct agent *a, const char *why)
{
    struct cluster_message m = {.type = CLUSTER_STOP, .code = 1};

    comm_mailbox_free(a->up);
    a->up = NULL;
    a->alone = true;
    a->alone_until = base_now() + SAVING;
    a->code = BASE_ERR_PEER_LOST;
    snprintf(a->words_of_end, sizeof a->words_of_end,
             "the coordinator on host 0 (%s:%u) is gone, the job cannot go on: %s",
             a->launch->master, a->launch->port, why);
    cluster_message_text(&m, a->words_of_end);
    tell_workers(a, &m);
}
