/* SPDX-License-Identifier: MIT
 *
 * A coordinator that succeeds a lost one: it begins with the state that its agent kept and with
 * what the agents report.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/coordinator_private.h"
#include "cluster/report.h"

/* Seconds that a successor waits for the reports of hosts that may be alive. */
static const double RETURN = 2.0;

/* ---- the successor ---- */

static void take_hosts(struct cluster_coordinator *c, const struct cluster_state *s)
{
    c->host_count = s->host_count;
    for (int i = 0; i < s->host_count; i++) {
        const struct cluster_state_host *from = &s->hosts[i];
        struct host *h = &c->hosts[i];

        *h = (struct host){.port = from->port,
                           .workers = from->workers,
                           .awaited = from->here && i != (int)s->leader};
        snprintf(h->name, sizeof h->name, "%s", from->name);
        snprintf(h->address, sizeof h->address, "%s", from->address);
    }
}

/* Takes over the workers of the last view that had not given their result; the reports tell of the
 * others. */
static void take_members(struct cluster_coordinator *c, double now)
{
    int next = 0;

    for (uint32_t i = 0; i < c->view.size; i++) {
        const struct comm_member *m = &c->view.members[i];

        if ((c->done >> i & 1) != 0)
            c->finished++;
        else
            c->workers[next++] = (struct worker){.id = m->id,
                                                 .host = m->host,
                                                 .state = WORKER_READY,
                                                 .member = true,
                                                 .first = 1,
                                                 .slot = m->slot,
                                                 .port = m->port,
                                                 .since = now,
                                                 .load.step = -1};
    }
}

struct cluster_coordinator *cluster_coordinator_succeed(const struct cluster_state *s,
                                                        cluster_check *check, uint32_t own,
                                                        uint32_t term, double now)
{
    const struct cluster_coordinator_setup setup = {
        .name = s->name,
        .program = s->program,
        .job = s->job,
        .check = check,
        .transport = s->transport[0] != '\0' ? s->transport : NULL,
        .hosts = s->first_hosts,
        .min_workers = s->asked,
        .least = s->least,
        .joins = s->joins,
        .restarts = s->restarts,
        .awaits_folder = s->folder,
        .silence = s->silence,
        .gather = s->gather,
    };
    struct cluster_coordinator *c = cluster_coordinator_new(&setup, now);

    c->phase = RESUMING;
    c->own = (int)own;
    c->term = term;
    c->deadline = now + RETURN;
    c->of_each = s->of_each;
    c->min_workers = s->min_workers;
    c->last_id = s->last_id;
    c->view = s->view;
    memcpy(c->quorum, s->quorum, sizeof c->quorum);
    c->done = s->done;
    c->finished = s->finished;
    c->done_view = s->done_view;
    c->result_id = s->result_id;
    c->result = json_incref(s->result);
    cluster_settings_take(&c->settings, s->settings.number, s->settings.values);
    if (s->stopping)
        snprintf(c->stop_text, sizeof c->stop_text, "it was asked to before host %u was lost",
                 s->leader);
    take_hosts(c, s);
    take_members(c, now);
    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:i, s:I, s:i}", "event", "succession", "host",
                                       c->own, "term", (json_int_t)term, "lost_host",
                                       (int)s->leader));
    return c;
}

bool cluster_coordinator_lead(struct cluster_coordinator *c, int host, int link)
{
    struct cluster_message m = {.type = CLUSTER_LEAD, .host = (uint32_t)c->own, .term = c->term};

    if (c->phase != RESUMING || c->hosts[host].here || c->hosts[host].led)
        return false;
    c->hosts[host].led = true;
    cluster_coordinator_say(c, link, &m);
    return true;
}

bool cluster_coordinator_seeks(const struct cluster_coordinator *c, int host)
{
    const struct host *h = &c->hosts[host];

    if (h->here || h->dead || h->port == 0 || host == c->own)
        return false;
    return c->phase == RESUMING ? !h->led : c->doubtful > 0 && c->phase < FAILING;
}

void cluster_coordinator_dead(struct cluster_coordinator *c, int host, double now)
{
    if (c->hosts[host].here || c->hosts[host].deserted)
        return;
    c->hosts[host].dead = true;
    c->hosts[host].awaited = false;
    cluster_coordinator_consider(c, now);
}

const char *cluster_coordinator_address(const struct cluster_coordinator *c, int host,
                                        uint16_t *port_p)
{
    *port_p = c->hosts[host].port;
    return c->hosts[host].address;
}

int cluster_coordinator_hosts(const struct cluster_coordinator *c)
{
    return c->host_count;
}

const char *cluster_coordinator_name(const struct cluster_coordinator *c)
{
    return c->name;
}

/* ---- reports ---- */

static struct worker *add_worker(struct cluster_coordinator *c, int host, uint32_t id, double now)
{
    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        if (c->workers[i].id == 0) {
            c->workers[i] = (struct worker){.id = id, .host = host, .load.step = -1, .since = now};
            return &c->workers[i];
        }
    return NULL;
}

/* Takes over a worker that its agent reports: a member of the last view, or one in no view yet. */
static base_status take_worker(struct cluster_coordinator *c, int host,
                               const struct cluster_reported *r, double now)
{
    struct worker *w = cluster_coordinator_find(c, r->id);
    int rank = comm_view_rank(&c->view, r->id);

    if (w != NULL && w->host != host)
        return base_fail(BASE_ERR_DATA, "host %d reports worker %u, which is not its own", host,
                         r->id);
    if (r->done && r->view > c->done_view)
        c->done_view = r->view;
    if (r->id > c->last_id)
        c->last_id = r->id;
    if (w == NULL && !r->live)
        return BASE_OK;
    if (w == NULL && (w = add_worker(c, host, r->id, now)) == NULL)
        return base_fail(BASE_ERR_DATA, "there are more than %d workers", COMM_MAX_WORKERS);
    if (w->state == WORKER_STARTING && r->done && rank >= 0) /* take_members counted it as gone */
        c->finished -= c->finished > 0;
    w->member = rank >= 0;
    w->state = r->done    ? WORKER_DONE
               : r->lost  ? WORKER_LEAVING
               : r->ready ? WORKER_READY
                          : WORKER_STARTING;
    if (r->lost)
        snprintf(w->why, sizeof w->why, "died");
    w->slot = r->slot;
    w->port = r->port;
    w->pid = r->pid;
    w->view = r->view;
    if (r->done && rank >= 0)
        c->done |= UINT64_C(1) << rank;
    if (r->done && !r->live) {
        c->finished++;
        cluster_coordinator_forget(c, w);
    }
    return BASE_OK;
}

/* Marks workers of the last view that the host no longer has. */
static void mark_missing(struct cluster_coordinator *c, int host, const struct cluster_report *r)
{
    for_each_worker(c, w) {
        w->missing |= w->host == host;
        for (int i = 0; i < r->count; i++)
            if (r->workers[i].id == w->id)
                w->missing = false;
    }
}

base_status cluster_coordinator_hear_report(struct cluster_coordinator *c, int link,
                                            const struct cluster_message *m, double now)
{
    base_status st = BASE_OK;
    struct cluster_message end = {.type = CLUSTER_END, .code = BASE_ERR_PEER_LOST};
    struct cluster_report *r = base_calloc(1, sizeof *r);
    int host = (int)m->host;

    if (c->phase != RESUMING || m->term != c->term || host >= c->host_count ||
        !c->hosts[host].awaited) {
        cluster_message_text(&end, "this host came too late: the others go on without it");
        cluster_coordinator_say(c, link, &end);
        goto out;
    }
    TRY(cluster_report_from_json(m->body, r));
    c->hosts[host].here = true;
    c->hosts[host].awaited = false;
    c->hosts[host].link = link;
    c->hosts[host].heard = now;
    for (int i = 0; i < r->count; i++)
        TRY(take_worker(c, host, &r->workers[i], now));
    if (r->result_id != 0 && (c->result_id == 0 || r->result_id < c->result_id)) {
        json_decref(c->result);
        c->result = json_incref(r->result);
        c->result_id = r->result_id;
    }
    mark_missing(c, host, r);
out:
    cluster_report_fini(r);
    base_free(r);
    return st;
}

/* The newest view that a worker knows may be newer than the state's; its waits must end, too. */
static uint32_t newest_view(const struct cluster_coordinator *c)
{
    uint32_t newest = c->view.number;

    for_each_worker(c, w)
        if (w->view > newest)
            newest = w->view;
    return newest;
}

static void lose_missing(struct cluster_coordinator *c, double now)
{
    for_each_worker(c, w) {
        struct failure own;

        if (!w->missing)
            continue;
        cluster_coordinator_lose(c, w, "died while there was no coordinator", now);
        own = cluster_coordinator_failure(c, w);
        cluster_coordinator_forget(c, w);
        cluster_coordinator_warn(c, &own, 0);
    }
    for (int i = 0; i < c->host_count; i++) {
        bool any = false;

        c->hosts[i].awaited = false;
        for_each_worker(c, w)
            any |= w->host == i;
        if (!c->hosts[i].here && any)
            cluster_coordinator_lose_host(c, i, "is gone", now);
    }
}

/* Hosts that reported late have not heard of the losses before. */
static void tell_losses_again(struct cluster_coordinator *c)
{
    for (uint32_t i = 0; i < c->view.size; i++) {
        const struct worker *w = cluster_coordinator_find(c, c->view.members[i].id);
        struct cluster_message lost = {
            .type = CLUSTER_LOST, .peer = c->view.members[i].id, .view = c->view.number};

        if ((c->done >> i & 1) != 0 || (w != NULL && w->state != WORKER_LEAVING))
            continue;
        cluster_message_text(&lost, "is lost");
        cluster_coordinator_say_all(c, &lost);
    }
}

void cluster_coordinator_resume(struct cluster_coordinator *c, double now)
{
    for (int i = 0; i < c->host_count; i++)
        if (c->hosts[i].awaited && now < c->deadline)
            return;
    c->phase = RUNNING;
    c->gaps = true; /* so that a view of this coordinator follows */
    c->view.number = newest_view(c);
    lose_missing(c, now);
    tell_losses_again(c);
    cluster_coordinator_say_settings(c, -1);
    if (c->stop_text[0] != '\0' && c->phase == RUNNING) {
        c->phase = STOPPING;
        cluster_coordinator_stop_all(c, 0, c->stop_text, now);
    }
    c->stop_text[0] = '\0';
}
