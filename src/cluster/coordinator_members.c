/* SPDX-License-Identifier: MIT
 *
 * The members of the job: ordering workers, losing them, the views that follow, and the end.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/coordinator_private.h"

/* Seconds that workers may take to save once the job has failed. */
static const double SAVING = 30.0;

struct worker *cluster_coordinator_find(struct cluster_coordinator *c, uint32_t id)
{
    for_each_worker(c, w)
        if (w->id == id)
            return w;
    return NULL;
}

static int count(const struct cluster_coordinator *c, enum worker_state state)
{
    int n = 0;

    for_each_worker(c, w)
        n += w->state == state;
    return n;
}

int cluster_coordinator_going_on(const struct cluster_coordinator *c)
{
    return count(c, WORKER_STARTING) + count(c, WORKER_READY);
}

static int alive(const struct cluster_coordinator *c) /* counts processes not reaped yet */
{
    int n = 0;

    for_each_worker(c, w)
        n++;
    return n;
}

/* ---- the end ---- */

void cluster_coordinator_stop_all(struct cluster_coordinator *c, int code, const char *reason,
                                  double now)
{
    struct cluster_message m = {.type = CLUSTER_STOP, .code = code};

    cluster_message_text(&m, reason);
    cluster_coordinator_say_all(c, &m);
    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:b, s:o}", "event", "stop", "failed", code != 0,
                                       "reason", base_json_text(reason)));
}

void cluster_coordinator_fail(struct cluster_coordinator *c, base_code code, double now,
                              const char *format, ...)
{
    va_list args;

    if (c->phase == FAILING || c->phase == OVER)
        return;
    va_start(args, format);
    vsnprintf(c->end_text, sizeof c->end_text, format, args);
    va_end(args);
    c->end_code = code;
    c->phase = FAILING;
    c->deadline = now + SAVING;
    cluster_coordinator_stop_all(c, (int)code, c->end_text, now);
}

void cluster_coordinator_end(struct cluster_coordinator *c)
{
    struct cluster_message m = {.type = CLUSTER_END, .code = (int)c->end_code};

    if (c->failure.id != 0 && c->end_code != BASE_OK &&
        (c->end_code == BASE_ERR_PEER_LOST || c->end_code == c->failure.reason))
        cluster_coordinator_last_words(c, &c->failure, &m);
    else
        cluster_message_text(&m, c->end_text);
    c->phase = OVER;
    cluster_coordinator_say_all(c, &m);
}

/* ---- leaving ---- */

static void forget_accusations(struct cluster_coordinator *c, const struct worker *of)
{
    for_each_worker(c, w) {
        bool accused = false;

        for_each_worker(c, accuser)
            if (accuser != of)
                accused |= (accuser->accuses >> (w - c->workers) & 1) != 0;
        if (!accused)
            w->suspected = 0;
    }
}

struct failure cluster_coordinator_failure(const struct cluster_coordinator *c,
                                           const struct worker *w)
{
    struct failure f = {.id = w->id, .pid = w->pid, .reason = w->failed};

    snprintf(f.words, sizeof f.words, "%s", w->words);
    snprintf(f.host, sizeof f.host, "%s", c->hosts[w->host].name);
    snprintf(f.why, sizeof f.why, "%s", w->why);
    return f;
}

bool cluster_coordinator_survives(const struct cluster_coordinator *c, base_code reason)
{
    return (c->setup.min_workers > 0 || c->setup.restarts) && c->result_id == 0 &&
           reason != BASE_ERR_USAGE && reason != BASE_ERR_MODEL;
}

/* True if a worker that is leaving has told its own failure: the job ends with its words once it
 * has exited, so there is no need to report how few are left until then. */
static bool is_ending(struct cluster_coordinator *c)
{
    bool any = false;

    for_each_worker(c, w)
        any |= w->state == WORKER_LEAVING && w->failed != BASE_OK && w->host < c->setup.hosts &&
               !cluster_coordinator_survives(c, w->failed);
    return any;
}

void cluster_coordinator_lose(struct cluster_coordinator *c, struct worker *w, const char *why,
                              double now)
{
    struct cluster_message lost = {.type = CLUSTER_LOST, .peer = w->id, .view = c->view.number};
    int left;

    if (w->state == WORKER_LEAVING)
        return;
    snprintf(w->why, sizeof w->why, "%s", why);
    if (c->failure.id == 0 && c->phase != FAILING) /* in FAILING all leave, for a known cause */
        c->failure = cluster_coordinator_failure(c, w);
    w->state = WORKER_LEAVING;
    w->accuses = 0;
    forget_accusations(c, w);
    cluster_message_text(&lost, why);
    if (c->phase == FAILING) /* all workers leave */
        return;
    if (w->member)
        cluster_coordinator_say_all(c, &lost);
    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:I, s:i, s:I, s:o}", "event", "lost", "id",
                                       (json_int_t)w->id, "host", w->host, "view",
                                       (json_int_t)c->view.number, "reason", base_json_text(why)));
    left = cluster_coordinator_going_on(c) + count(c, WORKER_DONE) + c->finished;
    if (left < c->min_workers && !is_ending(c))
        cluster_coordinator_fail(c, BASE_ERR_PEER_LOST, now,
                                 "%d of at least %d workers are left: worker %u %s", left,
                                 c->min_workers, w->id, why);
}

void cluster_coordinator_evict(struct cluster_coordinator *c, struct worker *w, const char *why,
                               double now)
{
    struct cluster_message kill = {.type = CLUSTER_KILL, .id = w->id};

    if (w->state == WORKER_LEAVING)
        return;
    w->evicted = true;
    cluster_message_text(&kill, why);
    cluster_coordinator_say(c, c->hosts[w->host].link, &kill);
    cluster_coordinator_lose(c, w, why, now);
}

void cluster_coordinator_forget(struct cluster_coordinator *c, struct worker *w)
{
    c->gaps |= w->member && w->state == WORKER_LEAVING; /* a worker that is done leaves no gap */
    json_decref(w->figures);
    *w = (struct worker){0};
}

/* The host may only have been asleep. */
static void tell_lost_host(struct cluster_coordinator *c, int link)
{
    struct cluster_message m = {.type = CLUSTER_STOP, .code = BASE_ERR_PEER_LOST};

    cluster_message_text(&m, "the other hosts have lost this one, and go on without it");
    cluster_coordinator_say(c, link, &m);
}

void cluster_coordinator_lose_host(struct cluster_coordinator *c, int index, const char *why,
                                   double now)
{
    struct host *h = &c->hosts[index];
    char text[256];

    snprintf(text, sizeof text, "is lost with host %d (%s), which %s", index, h->name, why);
    if (h->here && h->link >= 0 && c->phase < FAILING)
        tell_lost_host(c, h->link);
    h->deserted = h->here && (now - h->heard > CLUSTER_QUIET || now - c->woke < CLUSTER_QUIET ||
                              now - c->last_tick > CLUSTER_QUIET);
    h->here = false;
    for_each_worker(c, w)
        if (w->host == index && w->state != WORKER_DONE)
            cluster_coordinator_lose(c, w, text, now);
    for_each_worker(c, w) {
        struct failure own = cluster_coordinator_failure(c, w);

        if (w->host != index)
            continue;
        if (w->state == WORKER_DONE)
            c->finished++;
        else if (!w->dismissed)
            cluster_coordinator_warn(c, &own, 0);
        cluster_coordinator_forget(c, w);
    }
    if (c->phase == GATHERING && index < c->setup.hosts)
        cluster_coordinator_fail(c, BASE_ERR_PEER_LOST, now, "host %d (%s) %s", index, h->name,
                                 why);
    else if (index == c->own && c->phase != OVER)
        cluster_coordinator_fail(c, BASE_ERR_PEER_LOST, now, "host %d %s", index, why);
}

/* ---- views ---- */

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct comm_member *)a)->id, y = ((const struct comm_member *)b)->id;

    return (x > y) - (x < y);
}

static void publish(struct cluster_coordinator *c, double now)
{
    struct cluster_message m = {.type = CLUSTER_VIEW};
    struct comm_view *view = &c->view;
    json_t *ids = json_array();

    view->number++;
    if (view->number <= c->term * CLUSTER_VIEWS_OF_A_TERM)
        view->number = c->term * CLUSTER_VIEWS_OF_A_TERM + 1;
    view->size = 0;
    c->done = 0;
    for_each_worker(c, w) {
        struct comm_member *member = &view->members[view->size];

        w->accuses = w->convicts = 0;
        w->suspected = 0;
        if (!w->member && w->state == WORKER_READY) {
            c->failed_starts = 0;
            w->first = view->number;
        }
        w->member = w->state == WORKER_READY;
        if (!w->member)
            continue;
        *member = (struct comm_member){
            .id = w->id, .host = (uint16_t)w->host, .slot = w->slot, .port = w->port};
        snprintf(member->address, sizeof member->address, "%s", c->hosts[w->host].address);
        view->size++;
    }
    qsort(view->members, view->size, sizeof view->members[0], by_id);
    for (uint32_t i = 0; i < view->size; i++)
        json_array_append_new(ids, json_integer(view->members[i].id));
    c->gaps = false;
    c->failure = (struct failure){0}; /* the job survived it: a later end has another cause */
    m.members = *view;
    if (view->number == 1) /* no older view could be in use */
        cluster_coordinator_settle(c);
    cluster_coordinator_replicate(c); /* first: an agent that gets the view must have its state */
    cluster_coordinator_say_all(c, &m);
    cluster_coordinator_tell(c, now,
                             json_pack("{s:s, s:I, s:o}", "event", "view", "view",
                                       (json_int_t)view->number, "members", ids));
}

/* ---- start ---- */

void cluster_coordinator_order(struct cluster_coordinator *c, int index, int workers, double now)
{
    struct host *h = &c->hosts[index];
    struct cluster_message m = {
        .type = CLUSTER_JOB, .id = c->last_id + 1, .host = (uint32_t)index, .workers = workers};
    int left = workers;

    for (int i = 0; i < COMM_MAX_WORKERS && left > 0; i++) {
        struct worker *w = &c->workers[i];

        if (w->id != 0)
            continue;
        *w = (struct worker){.id = ++c->last_id, .host = index, .since = now, .load.step = -1};
        left--;
    }
    m.body = json_pack("{s:s, s:s, s:O, s:s?, s:f, s:{s:i, s:i}}", "name", c->name, "program",
                       c->program, "job", c->job, "transport", c->transport, "silence",
                       c->setup.silence, "launch", "workers", c->of_each, "hosts", c->setup.hosts);
    cluster_coordinator_say(c, h->link, &m);
    cluster_coordinator_say_settings(c, index);
}

/* Starts the job once all its hosts are there. Guests that are there, too, may leave again: the job
 * does not depend on them. */
static void start(struct cluster_coordinator *c, double now)
{
    int total = 0;

    for (int i = 0; i < c->setup.hosts; i++) {
        if (!c->hosts[i].here)
            return;
        total += c->hosts[i].workers;
    }
    c->of_each = c->hosts[0].workers;
    for (int i = 1; i < c->setup.hosts; i++)
        if (c->hosts[i].workers != c->of_each)
            c->of_each = 0;
    c->phase = STARTING_UP;
    c->deadline = now + c->setup.gather;
    c->min_workers = c->setup.min_workers > 0 ? c->setup.min_workers
                     : c->setup.least > 0     ? c->setup.least
                                              : total;
    for (int i = 0; i < c->host_count; i++)
        if (c->hosts[i].here)
            cluster_coordinator_order(c, i, c->hosts[i].workers, now);
    if (c->min_workers > total)
        cluster_coordinator_fail(c, BASE_ERR_USAGE, now,
                                 "%d workers are too few: at least %d are needed (--min-workers)",
                                 total, c->min_workers);
}

static bool has_arrivals(const struct cluster_coordinator *c) /* workers that wait for a view */
{
    for_each_worker(c, w)
        if (w->state == WORKER_READY && !w->member)
            return true;
    return false;
}

/* Every member works in the current view. A new view for arrivals waits for that: made earlier, it
 * could let some members open a group that others have skipped. After a loss the next view need not
 * wait. */
static bool settled(const struct cluster_coordinator *c)
{
    for_each_worker(c, w)
        if (w->member && w->state == WORKER_READY && w->view != c->view.number)
            return false;
    return true;
}

/* All members of the current view have come to work in it, including those that were lost or gave a
 * result since. All hosts know of such a view, but not of one that was only published. */
static bool is_in_use(struct cluster_coordinator *c)
{
    if (c->view.number == 0)
        return false;
    for (uint32_t i = 0; i < c->view.size; i++) {
        const struct worker *w = cluster_coordinator_find(c, c->view.members[i].id);

        if (w == NULL || w->view != c->view.number)
            return false;
    }
    return true;
}

/* Once all workers that finished the run are gone, late joiners can no longer get the state. */
static void dismiss_latecomers(struct cluster_coordinator *c, double now)
{
    for_each_worker(c, w)
        if (w->member && w->state == WORKER_READY && w->first <= c->done_view)
            return;
    for_each_worker(c, w) {
        if (w->state == WORKER_DONE || w->state == WORKER_LEAVING)
            continue;
        w->dismissed = true;
        cluster_coordinator_evict(c, w, "came when the work was done", now);
    }
}

static void move_on(struct cluster_coordinator *c, double now)
{
    if (c->phase == GATHERING)
        start(c, now);
    if (c->phase == RESUMING)
        cluster_coordinator_resume(c, now);
    if (c->phase == STARTING_UP && count(c, WORKER_STARTING) == 0)
        c->phase = RUNNING;
    if (c->phase == FAILING && alive(c) == 0)
        cluster_coordinator_end(c);
    if (c->phase != RUNNING && c->phase != STOPPING)
        return;
    if (is_in_use(c))
        cluster_coordinator_settle(c);
    if (alive(c) > 0 && !cluster_coordinator_may_go_on(c, now))
        return;
    if (c->done_view != 0)
        dismiss_latecomers(c, now);
    if (count(c, WORKER_LEAVING) > 0)
        return;
    if (alive(c) > 0) {
        if ((c->gaps || (has_arrivals(c) && settled(c))) && count(c, WORKER_READY) > 0 &&
            cluster_coordinator_may_publish(c, now))
            publish(c, now);
        return;
    }
    if (c->result_id == 0)
        cluster_coordinator_fail(c, BASE_ERR_PEER_LOST, now,
                                 "no worker is left, and there is no result");
    cluster_coordinator_end(c);
}

void cluster_coordinator_consider(struct cluster_coordinator *c, double now)
{
    move_on(c, now);
    cluster_coordinator_replicate(c);
}
