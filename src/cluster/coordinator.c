/* SPDX-License-Identifier: MIT
 *
 * What the coordinator hears: messages of agents, time. Every input ends in
 * cluster_coordinator_consider, which moves the phase on and publishes a view when one is due.
 */
#include "cluster/coordinator.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/coordinator_private.h"

/* Seconds. GRACE: how long one worker's accusation waits for the accused one's own. STALL: a
 * coordinator that did not tick for so long was itself asleep. */
static const double GRACE = 0.75, STALL = 1.0;

/* After so many workers in a row were killed before they were in a view, no more are started. */
enum { MAX_FAILED_STARTS = 5 };

struct cluster_coordinator *cluster_coordinator_new(const struct cluster_coordinator_setup *setup,
                                                    double now)
{
    struct cluster_coordinator *c = base_calloc(1, sizeof *c);

    c->setup = *setup;
    snprintf(c->name, sizeof c->name, "%s", setup->name);
    c->program = base_strdup(setup->program);
    c->transport = setup->transport != NULL ? base_strdup(setup->transport) : NULL;
    c->job = setup->job != NULL ? json_deep_copy(setup->job) : json_object();
    c->born = c->last_tick = now;
    c->woke = now - CLUSTER_QUIET;
    c->deadline = now + setup->gather;
    c->host_count = setup->hosts;
    c->events = json_array();
    return c;
}

void cluster_coordinator_free(struct cluster_coordinator *c)
{
    struct cluster_message message;
    int link;

    if (c == NULL)
        return;
    while (cluster_coordinator_next(c, &link, &message))
        cluster_message_fini(&message);
    for_each_worker(c, w)
        json_decref(w->figures);
    json_decref(c->job);
    json_decref(c->result);
    json_decref(c->events);
    json_decref(c->state);
    cluster_settings_fini(&c->settings);
    base_free(c->program);
    base_free(c->transport);
    base_free(c->folder);
    base_free(c);
}

bool cluster_coordinator_over(const struct cluster_coordinator *c)
{
    return c->phase == OVER;
}

const json_t *cluster_coordinator_result(const struct cluster_coordinator *c)
{
    return c->result;
}

const char *cluster_coordinator_folder(const struct cluster_coordinator *c)
{
    return c->folder;
}

/* ---- what agents say ---- */

/* Sends away a guest that has lost all its workers. (When the work is done, it hears so with the
 * other hosts.) */
static void dismiss_guest(struct cluster_coordinator *c, int host, const struct failure *last)
{
    struct cluster_message m = {.type = CLUSTER_END};

    if (host < c->setup.hosts || c->phase > STOPPING || c->result_id != 0)
        return;
    for_each_worker(c, w)
        if (w->host == host)
            return;
    cluster_coordinator_last_words(c, last, &m);
    cluster_coordinator_say(c, c->hosts[host].link, &m);
    c->hosts[host].here = false;
}

/* A worker of the job's own hosts that gave up by itself (bad data, a loss that is no number) ends
 * the job, unless the person said how few may be left, or that dead workers are replaced and
 * another worker may fare better. Once there is a result no other worker repeats the failed one's
 * work: what it failed to write stays unwritten. */
static void hear_own_failure(struct cluster_coordinator *c, const struct worker *w,
                             const struct failure *own, double now)
{
    char text[512];

    if (own->signal != 0 || w->evicted || w->host >= c->setup.hosts ||
        cluster_coordinator_survives(c, own->reason) || c->phase == FAILING || c->phase == OVER)
        return;
    c->failure = *own;
    cluster_coordinator_describe(own, text, sizeof text);
    cluster_coordinator_fail(c, own->reason != BASE_OK ? own->reason : BASE_ERR_PEER_LOST, now,
                             "%s%s%s", text, own->reason != BASE_OK ? ": " : "", own->words);
}

static void hear_exit(struct cluster_coordinator *c, struct worker *w,
                      const struct cluster_message *m, double now)
{
    struct failure own;
    int host = w->host;
    bool done = w->state == WORKER_DONE, missed = !done && !w->dismissed;
    bool replace; /* not for a worker that gave up by itself: the next would, too */

    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:I, s:i, s:I, s:i, s:i}", "event", "exit", "id",
                                       (json_int_t)w->id, "host", w->host, "pid",
                                       (json_int_t)m->pid, "code", m->code, "signal", m->signal));
    w->pid = m->pid;
    if (done)
        c->finished++;
    else
        cluster_coordinator_lose(c, w, "died", now);
    own = cluster_coordinator_failure(c, w);
    own.exited = true;
    own.code = m->code;
    own.signal = m->signal;
    snprintf(own.lines, sizeof own.lines, "%.639s", m->text);
    if (c->failure.id == w->id)
        c->failure = own;
    if (!done)
        hear_own_failure(c, w, &own, now);
    if (c->failure.id == w->id && !w->member && (c->phase == RUNNING || c->phase == STOPPING))
        c->failure = (struct failure){0}; /* not needed: a later end has another cause */
    c->failed_starts += !w->member;
    replace = c->setup.restarts && (c->phase == STARTING_UP || c->phase == RUNNING) &&
              c->result_id == 0 && m->signal != 0 && !done && !w->astray &&
              c->failed_starts < MAX_FAILED_STARTS;
    cluster_coordinator_forget(c, w);
    if (replace)
        cluster_coordinator_order(c, host, 1, now);
    else
        dismiss_guest(c, host, &own);
    if (missed)
        cluster_coordinator_warn(c, &own, replace ? c->last_id : 0);
}

/* Has that worker of the view given its result? */
static bool has_finished(const struct cluster_coordinator *c, uint32_t id)
{
    int rank = comm_view_rank(&c->view, id);

    return rank >= 0 && (c->done >> rank & 1) != 0;
}

static void hear_suspicion(struct cluster_coordinator *c, struct worker *w,
                           const struct cluster_message *m, double now)
{
    struct worker *peer = cluster_coordinator_find(c, m->peer);
    char why[96];

    /* No view follows in which it could get what that worker's last message had. */
    if (m->view == c->view.number && w->member && w->state == WORKER_READY &&
        has_finished(c, m->peer)) {
        snprintf(why, sizeof why, "does not reach worker %u, which has finished", m->peer);
        cluster_coordinator_evict(c, w, why, now);
        return;
    }
    if (m->view != c->view.number || peer == NULL || peer == w || !w->member || !peer->member ||
        w->state == WORKER_LEAVING || peer->state == WORKER_LEAVING)
        return; /* about an older view, or decided already */
    if (w->first == c->view.number && peer->first < c->view.number) {
        w->astray = true;
        snprintf(why, sizeof why, "has come and does not reach worker %u", peer->id);
        cluster_coordinator_evict(c, w, why, now);
        return;
    }
    w->accuses |= UINT64_C(1) << (peer - c->workers);
    if ((peer->accuses >> (w - c->workers) & 1) != 0) {
        struct worker *leaves = w->id > peer->id ? w : peer;

        snprintf(why, sizeof why, "and worker %u do not reach each other",
                 leaves == w ? peer->id : w->id);
        cluster_coordinator_evict(c, leaves, why, now);
    } else if (peer->suspected <= 0) {
        peer->suspected = now;
    }
}

/* One word is not enough: it may be the accuser who is wrong. */
static void hear_accusation(struct cluster_coordinator *c, struct worker *w,
                            const struct cluster_message *m, double now)
{
    struct worker *peer = cluster_coordinator_find(c, m->peer);
    uint64_t bit = peer != NULL ? UINT64_C(1) << (peer - c->workers) : 0;
    uint32_t accusers = 0;
    char why[256];

    if (m->view != c->view.number || peer == NULL || peer == w || !w->member || !peer->member ||
        w->state == WORKER_LEAVING || peer->state == WORKER_LEAVING || (w->convicts & bit) != 0)
        return; /* about an older view, decided already, or said before */
    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:I, s:I, s:o}", "event", "accused", "id",
                                       (json_int_t)peer->id, "by", (json_int_t)w->id, "reason",
                                       base_json_text(m->text)));
    w->convicts |= bit;
    for_each_worker(c, accuser)
        accusers +=
            accuser->member && accuser->state != WORKER_LEAVING && (accuser->convicts & bit) != 0;
    if (2 * accusers <= c->view.size)
        return;
    peer->astray = true;
    snprintf(why, sizeof why, "%.200s, say %u of %u workers", m->text, accusers, c->view.size);
    cluster_coordinator_evict(c, peer, why, now);
}

/* A heartbeat of worker `w`, or of the host itself if `w` is NULL. */
static void hear_heartbeat(struct cluster_coordinator *c, int host, struct worker *w,
                           const struct cluster_message *m, double now)
{
    double *told = w != NULL ? &w->told : &c->hosts[host].told;

    if (w != NULL) {
        w->view = m->view;
        w->roles = m->roles;
    }
    *(w != NULL ? &w->load : &c->hosts[host].load) = m->load;
    if (now - *told < 1.0)
        return;
    *told = now;
    cluster_coordinator_tell_load(c, now, m->id, host, &m->load);
}

static base_status hear_ready(struct cluster_coordinator *c, struct worker *w,
                              const struct cluster_message *m)
{
    if (w->state == WORKER_LEAVING)
        return BASE_OK; /* its last message came after the news of its death */
    if (w->state != WORKER_STARTING)
        return base_fail(BASE_ERR_DATA, "worker %u is ready twice", w->id);
    for_each_worker(c, other) /* workers refuse a view with the same words twice */
        if (other->host == w->host && other->state == WORKER_READY && other->slot == m->slot)
            return base_fail(BASE_ERR_DATA, "workers %u and %u have slot %u", other->id, w->id,
                             m->slot);
    w->state = WORKER_READY;
    w->slot = m->slot;
    w->port = m->port;
    w->pid = m->pid;
    return BASE_OK;
}

/* The worker was done before it came to the current view. The others would wait for it there until
 * their patience ends, so they are told that it has left. */
static void leave_view(struct cluster_coordinator *c, const struct worker *w)
{
    struct cluster_message lost = {.type = CLUSTER_LOST, .peer = w->id, .view = c->view.number};

    c->gaps = true;
    cluster_message_text(&lost, "is done");
    cluster_coordinator_say_all(c, &lost);
}

static void hear_result(struct cluster_coordinator *c, struct worker *w,
                        const struct cluster_message *m)
{
    if (w->state != WORKER_READY)
        return;
    w->state = WORKER_DONE;
    if (w->member)
        c->done |= UINT64_C(1) << comm_view_rank(&c->view, w->id);
    if (m->view < c->view.number)
        leave_view(c, w);
    if (m->view > c->done_view)
        c->done_view = m->view;
    if (c->result_id != 0 && c->result_id < w->id)
        return;
    json_decref(c->result);
    c->result = json_incref(m->body);
    c->result_id = w->id;
}

static base_status hear_failure(struct worker *w, const struct cluster_message *m)
{
    if (m->code == BASE_OK || m->code > BASE_ERR_INTERNAL)
        return base_fail(BASE_ERR_DATA, "worker %u failed with the unknown code %d", w->id,
                         m->code);
    w->failed = (base_code)m->code;
    snprintf(w->words, sizeof w->words, "%s", m->text);
    return BASE_OK;
}

static void hear_stop(struct cluster_coordinator *c, const struct cluster_message *m, double now)
{
    if (c->phase == GATHERING || c->phase == STARTING_UP)
        cluster_coordinator_fail(c, BASE_ERR_INTERRUPTED, now, "%s", m->text);
    if (c->phase == RESUMING)
        snprintf(c->stop_text, sizeof c->stop_text, "%.255s", m->text);
    if (c->phase != RUNNING)
        return;
    c->phase = STOPPING;
    cluster_coordinator_stop_all(c, 0, m->text, now);
}

static base_status hear_worker(struct cluster_coordinator *c, int host,
                               const struct cluster_message *m, double now)
{
    struct worker *w = cluster_coordinator_find(c, m->type == CLUSTER_LOST ? m->peer : m->id);

    if (w == NULL)
        return BASE_OK; /* the worker is gone meanwhile */
    if (w->host != host)
        return base_fail(BASE_ERR_DATA, "host %d speaks of worker %u, which is not its own", host,
                         w->id);
    switch (m->type) {
    case CLUSTER_READY:
        return hear_ready(c, w, m);
    case CLUSTER_HEARTBEAT:
        hear_heartbeat(c, host, w, m, now);
        break;
    case CLUSTER_LOST:
        if (w->state != WORKER_DONE)
            cluster_coordinator_lose(c, w, m->text, now);
        break;
    case CLUSTER_SUSPECT:
        hear_suspicion(c, w, m, now);
        break;
    case CLUSTER_ACCUSE:
        hear_accusation(c, w, m, now);
        break;
    case CLUSTER_RESULT:
        hear_result(c, w, m);
        break;
    case CLUSTER_FAILED:
        return hear_failure(w, m);
    case CLUSTER_EXITED:
        hear_exit(c, w, m, now);
        break;
    case CLUSTER_FIGURES:
        json_decref(w->figures);
        w->figures = json_incref(m->body);
        break;
    case CLUSTER_APPLIED:
        cluster_coordinator_hear_applied(c, m);
        break;
    case CLUSTER_FOLDER:
        if (host == c->own && c->folder == NULL) /* other hosts' folders are on other disks */
            c->folder = base_strdup(m->text);
        break;
    default:
        return base_fail(BASE_ERR_DATA, "an agent does not say '%s'", cluster_type_name(m->type));
    }
    return BASE_OK;
}

static int host_of(const struct cluster_coordinator *c, int link) /* or -1 */
{
    for (int i = 0; i < c->host_count; i++)
        if (c->hosts[i].here && c->hosts[i].link == link)
            return i;
    return -1;
}

bool cluster_coordinator_knows(const struct cluster_coordinator *c, int link)
{
    return host_of(c, link) >= 0;
}

/* A `lead` comes from a successor, or from an agent that has left this coordinator for one. */
static void hear_lead(struct cluster_coordinator *c, const struct cluster_message *m, double now)
{
    if (m->term <= c->term)
        return;
    c->failure = (struct failure){0}; /* no worker is to blame */
    cluster_coordinator_fail(c, BASE_ERR_PEER_LOST, now,
                             "the other hosts go on without this one: host %u coordinates",
                             m->host);
}

/* Hears agents of hosts that are not here: they join, report, or know of another coordinator. */
static base_status hear_stranger(struct cluster_coordinator *c, int link,
                                 const struct cluster_message *m, double now)
{
    struct cluster_message no = {
        .type = CLUSTER_VOTE, .host = (uint32_t)c->own, .term = c->term, .code = 1};

    switch (m->type) {
    case CLUSTER_JOIN:
        return cluster_coordinator_hear_join(c, link, m, now);
    case CLUSTER_REPORT:
        return cluster_coordinator_hear_report(c, link, m, now);
    case CLUSTER_ASK: /* the agent takes this coordinator for lost */
        cluster_coordinator_say(c, link, &no);
        return BASE_OK;
    case CLUSTER_VOTE:      /* it is late, or its agent does not want to be led */
    case CLUSTER_HEARTBEAT: /* its agent was refused and has not read that yet */
        return BASE_OK;
    default:
        return base_fail(BASE_ERR_DATA, "it says '%s' before it has joined",
                         cluster_type_name(m->type));
    }
}

base_status cluster_coordinator_hear(struct cluster_coordinator *c, int link,
                                     const struct cluster_message *m, double now)
{
    base_status st = BASE_OK;
    int host = host_of(c, link);

    if (host >= 0)
        c->hosts[host].heard = now;
    if (m->type == CLUSTER_LEAD)
        hear_lead(c, m, now);
    else if (host < 0)
        st = hear_stranger(c, link, m, now);
    else if (m->type == CLUSTER_JOIN || m->type == CLUSTER_REPORT)
        st = base_fail(BASE_ERR_DATA, "host %d joins twice", host);
    else if (m->type == CLUSTER_STOP)
        hear_stop(c, m, now);
    else if (m->type == CLUSTER_SETTINGS)
        cluster_coordinator_hear_settings(c, m);
    else if (m->type == CLUSTER_HEARTBEAT && m->id == 0)
        hear_heartbeat(c, host, NULL, m, now);
    else if (m->type != CLUSTER_VOTE) /* a vote may come late */
        st = hear_worker(c, host, m, now);
    cluster_coordinator_consider(c, now);
    return st;
}

void cluster_coordinator_gone(struct cluster_coordinator *c, int link, const char *why, double now)
{
    int host = host_of(c, link);

    if (host >= 0) {
        c->hosts[host].link = -1;
        cluster_coordinator_lose_host(c, host, why, now);
    }
    cluster_coordinator_consider(c, now);
}

/* ---- time ---- */

static void tick_hosts(struct cluster_coordinator *c, double now)
{
    char why[64];

    for (int i = 0; i < c->host_count; i++) {
        double silent = now - c->hosts[i].heard;

        snprintf(why, sizeof why, "was silent for %.1f s", silent);
        if (c->hosts[i].here && silent > c->setup.silence)
            cluster_coordinator_lose_host(c, i, why, now);
    }
}

static void tick_workers(struct cluster_coordinator *c, double now)
{
    char why[64];

    for_each_worker(c, w) {
        double silent = now - c->hosts[w->host].heard;

        snprintf(why, sizeof why, "was silent for %.1f s", silent);
        if (w->suspected > 0 && now - w->suspected >= GRACE)
            cluster_coordinator_evict(c, w, "does not answer another worker", now);
        else if (w->state == WORKER_STARTING && now - w->since > c->setup.gather)
            cluster_coordinator_evict(c, w, "did not become ready", now);
        if (w->state == WORKER_LEAVING && silent > CLUSTER_QUIET)
            cluster_coordinator_lose_host(c, w->host, why, now);
    }
}

static void name_absent(struct cluster_coordinator *c, double now)
{
    char list[256] = "";
    size_t used = 0;

    for (int i = 0; i < c->setup.hosts && used < sizeof list - 16; i++)
        if (!c->hosts[i].here)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%d", used > 0 ? ", " : "", i);
    cluster_coordinator_fail(c, BASE_ERR_TIMEOUT, now,
                             "host %s of %d did not come within %g s (--gather)", list,
                             c->setup.hosts, c->setup.gather);
}

void cluster_coordinator_tick(struct cluster_coordinator *c, double now)
{
    const struct cluster_message beat = {.type = CLUSTER_HEARTBEAT, .load.step = -1};
    double stalled = now - c->last_tick - STALL;

    c->last_tick = now;
    if (now >= c->next_beat) { /* agents must see that the coordinator is there */
        cluster_coordinator_say_all(c, &beat);
        c->next_beat = now + cluster_heartbeat_interval(c->setup.silence);
    }
    if (stalled > 0) { /* the coordinator itself was asleep: no host is to blame */
        c->woke = now;
        for (int i = 0; i < c->host_count; i++)
            c->hosts[i].heard += stalled;
    }
    tick_hosts(c, now);
    tick_workers(c, now);
    if (c->phase == GATHERING && now > c->deadline)
        name_absent(c, now);
    if (c->phase == FAILING && now > c->deadline)
        cluster_coordinator_end(c);
    cluster_coordinator_consider(c, now);
}
