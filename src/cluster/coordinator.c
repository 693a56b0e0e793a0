/* SPDX-License-Identifier: MIT
 *
 * What the coordinator hears and decides. Every input ends in `consider`, which moves the phase on
 * and publishes a view when one is due.
 */
#include "cluster/coordinator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/coordinator_private.h"

/* Seconds. GRACE: how long an accusation waits for its counterpart. QUIET: an accused worker's host
 * that is silent that long is gone, without waiting for the whole of `silence`. SAVING: workers may
 * take so long to save once the job has failed. */
static const double GRACE = 0.75, QUIET = 1.25, SAVING = 30.0, STALL = 1.0;

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
    json_decref(c->job);
    json_decref(c->result);
    json_decref(c->events);
    base_free(c->program);
    base_free(c->transport);
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

static struct worker *find(struct cluster_coordinator *c, uint32_t id)
{
    for (int i = 0; id != 0 && i < COMM_MAX_WORKERS; i++)
        if (c->workers[i].id == id)
            return &c->workers[i];
    return NULL;
}

static int count(const struct cluster_coordinator *c, enum worker_state state)
{
    int n = 0;

    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        n += c->workers[i].id != 0 && c->workers[i].state == state;
    return n;
}

static int alive(const struct cluster_coordinator *c) /* processes not reaped yet */
{
    int n = 0;

    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        n += c->workers[i].id != 0;
    return n;
}

/* ---- the end ---- */

static void stop_all(struct cluster_coordinator *c, int code, const char *reason, double now)
{
    struct cluster_message m = {.type = CLUSTER_STOP, .code = code};

    cluster_message_text(&m, reason);
    cluster_say_all(c, &m);
    cluster_tell(c, now,
                 json_pack("{s:s, s:b, s:o}", "event", "stop", "failed", code != 0, "reason",
                           base_json_text(reason)));
}

/* The first cause counts; workers get a while to save. */
static void fail(struct cluster_coordinator *c, base_code code, double now, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void fail(struct cluster_coordinator *c, base_code code, double now, const char *format, ...)
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
    stop_all(c, 1, c->end_text, now);
}

static void end(struct cluster_coordinator *c)
{
    struct cluster_message m = {.type = CLUSTER_END, .code = (int)c->end_code};
    const struct failure *f = &c->failure;

    if (f->id != 0 && c->end_code != BASE_OK) {
        m.id = f->id;
        cluster_last_words(f, m.text, sizeof m.text);
    } else {
        cluster_message_text(&m, c->end_text);
    }
    c->phase = OVER;
    cluster_say_all(c, &m);
}

/* ---- leaving ---- */

static void forget_accusations(struct cluster_coordinator *c, const struct worker *of)
{
    for (int i = 0; i < COMM_MAX_WORKERS; i++) {
        struct worker *w = &c->workers[i];
        bool accused = false;

        for (int j = 0; j < COMM_MAX_WORKERS; j++)
            if (&c->workers[j] != of)
                accused |= (c->workers[j].accuses >> i & 1) != 0;
        if (!accused)
            w->suspected = 0;
    }
}

static void blame(struct cluster_coordinator *c, const struct worker *w, const char *why)
{
    struct failure *f = &c->failure;

    if (f->id != 0)
        return;
    f->id = w->id;
    f->pid = w->pid;
    snprintf(f->host, sizeof f->host, "%s", c->hosts[w->host].name);
    snprintf(f->why, sizeof f->why, "%s", why);
}

/* Tells everyone that `w` is lost; its entry stays until its agent has reaped it. */
static void lose(struct cluster_coordinator *c, struct worker *w, const char *why, double now)
{
    struct cluster_message lost = {.type = CLUSTER_LOST, .peer = w->id, .view = c->view.number};
    int left;

    if (w->state == WORKER_LEAVING)
        return;
    blame(c, w, why);
    w->state = WORKER_LEAVING;
    w->accuses = 0;
    forget_accusations(c, w);
    cluster_message_text(&lost, why);
    if (c->phase == FAILING) /* everyone leaves */
        return;
    if (w->member)
        cluster_say_all(c, &lost);
    cluster_tell(c, now,
                 json_pack("{s:s, s:I, s:i, s:I, s:o}", "event", "lost", "id", (json_int_t)w->id,
                           "host", w->host, "view", (json_int_t)c->view.number, "reason",
                           base_json_text(why)));
    left = count(c, WORKER_STARTING) + count(c, WORKER_READY) + count(c, WORKER_DONE) + c->finished;
    if (left < c->min_workers)
        fail(c, BASE_ERR_PEER_LOST, now, "%d of at least %d workers are left: worker %u %s", left,
             c->min_workers, w->id, why);
}

/* The same for one whose agent takes it for healthy: it must be killed first. */
static void evict(struct cluster_coordinator *c, struct worker *w, const char *why, double now)
{
    struct cluster_message kill = {.type = CLUSTER_KILL, .id = w->id};

    if (w->state == WORKER_LEAVING)
        return;
    cluster_message_text(&kill, why);
    cluster_say(c, c->hosts[w->host].link, &kill);
    lose(c, w, why, now);
}

static void forget(struct cluster_coordinator *c, struct worker *w)
{
    c->gaps |= w->member && w->state == WORKER_LEAVING; /* one that is done leaves none */
    *w = (struct worker){0};
}

static void lose_host(struct cluster_coordinator *c, int index, const char *why, double now)
{
    struct host *h = &c->hosts[index];
    char text[256];

    snprintf(text, sizeof text, "is on host %d (%s), which %s", index, h->name, why);
    h->here = false;
    for (int i = 0; i < COMM_MAX_WORKERS; i++) {
        struct worker *w = &c->workers[i];

        if (w->id == 0 || w->host != index)
            continue;
        if (w->state == WORKER_DONE)
            c->finished++;
        else
            lose(c, w, text, now);
        forget(c, w);
    }
    if (c->phase == GATHERING)
        fail(c, BASE_ERR_PEER_LOST, now, "host %d (%s) %s", index, h->name, why);
    else if (index == 0 && c->phase != OVER)
        fail(c, BASE_ERR_PEER_LOST, now, "host 0 %s", why);
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
    view->size = 0;
    for (int i = 0; i < COMM_MAX_WORKERS; i++) {
        struct worker *w = &c->workers[i];
        struct comm_member *member = &view->members[view->size];

        w->accuses = 0;
        w->suspected = 0;
        w->member = w->id != 0 && w->state == WORKER_READY;
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
    c->gaps = c->arrivals = false;
    m.members = *view;
    cluster_say_all(c, &m);
    cluster_tell(c, now,
                 json_pack("{s:s, s:I, s:o}", "event", "view", "view", (json_int_t)view->number,
                           "members", ids));
}

/* ---- start ---- */

static void order(struct cluster_coordinator *c, int index, double now)
{
    struct host *h = &c->hosts[index];
    struct cluster_message m = {
        .type = CLUSTER_JOB, .id = c->last_id + 1, .host = (uint32_t)index, .workers = h->workers};
    int left = h->workers;

    for (int i = 0; i < COMM_MAX_WORKERS && left > 0; i++) {
        struct worker *w = &c->workers[i];

        if (w->id != 0)
            continue;
        *w = (struct worker){.id = ++c->last_id, .host = index, .since = now, .load.step = -1};
        left--;
    }
    m.body = json_pack("{s:s, s:s, s:O, s:s?, s:f}", "name", c->name, "program", c->program, "job",
                       c->job, "transport", c->transport, "silence", c->setup.silence);
    cluster_say(c, h->link, &m);
}

static void start(struct cluster_coordinator *c, double now)
{
    int total = 0;

    for (int i = 0; i < c->host_count; i++) {
        if (!c->hosts[i].here)
            return;
        total += c->hosts[i].workers;
    }
    c->phase = STARTING_UP;
    c->deadline = now + c->setup.gather;
    c->min_workers = c->setup.min_workers > 0 ? c->setup.min_workers : total;
    for (int i = 0; i < c->host_count; i++)
        order(c, i, now);
    if (c->min_workers > total)
        fail(c, BASE_ERR_USAGE, now, "--min-workers %d of %d workers", c->min_workers, total);
}

/* Every member works in the current view. Before that, a view for the sake of arrivals could leave
 * some who open a group that others have skipped; after a loss there is nobody left to wait for. */
static bool settled(const struct cluster_coordinator *c)
{
    for (int i = 0; i < COMM_MAX_WORKERS; i++) {
        const struct worker *w = &c->workers[i];

        if (w->id != 0 && w->member && w->state == WORKER_READY && w->view != c->view.number)
            return false;
    }
    return true;
}

/* Moves on whatever can move. */
static void consider(struct cluster_coordinator *c, double now)
{
    if (c->phase == GATHERING)
        start(c, now);
    if (c->phase == STARTING_UP && count(c, WORKER_STARTING) == 0)
        c->phase = RUNNING;
    if (c->phase == FAILING && alive(c) == 0)
        end(c);
    if ((c->phase != RUNNING && c->phase != STOPPING) || count(c, WORKER_LEAVING) > 0)
        return;
    if (alive(c) > 0) {
        if ((c->gaps || (c->arrivals && settled(c))) && count(c, WORKER_READY) > 0)
            publish(c, now);
        return;
    }
    if (c->result_id == 0)
        fail(c, BASE_ERR_PEER_LOST, now, "no worker is left, and there is no result");
    end(c);
}

/* ---- joining ---- */

/* The first of `mine` that differs from the job's; NULL: none. */
static const char *conflict(const struct cluster_coordinator *c, const json_t *body)
{
    const char *program = json_string_value(json_object_get(body, "program")), *key;
    json_t *value;

    if (program != NULL && strcmp(program, c->program) != 0)
        return "program";
    json_object_foreach(json_object_get(body, "job"), key, value)
    {
        if (!json_equal(value, json_object_get(c->job, key)))
            return key;
    }
    return NULL;
}

static base_status admit(struct cluster_coordinator *c, const struct cluster_message *m,
                         int *index_p)
{
    const char *differs = conflict(c, m->body);
    int index = (int)m->host, workers = m->workers;

    if (m->version != CLUSTER_PROTOCOL)
        return base_fail(BASE_ERR_USAGE,
                         "host 0 speaks protocol %d, this host %u: install the same version",
                         CLUSTER_PROTOCOL, m->version);
    if (c->phase > RUNNING)
        return base_fail(BASE_ERR_USAGE, "the job is ending");
    if (differs != NULL)
        return base_fail(BASE_ERR_USAGE,
                         "this host's \"%s\" is not the one of host 0, whose job "
                         "counts; start all hosts with the same options",
                         differs);
    if (index < c->setup.hosts && c->hosts[index].here)
        return base_fail(BASE_ERR_USAGE, "host %d is there already; give each host its own --rank",
                         index);
    if (index >= c->setup.hosts && index != CLUSTER_ANY_HOST)
        return base_fail(BASE_ERR_USAGE, "host %d is not one of %d; --num-nodes differs", index,
                         c->setup.hosts);
    if (c->phase != GATHERING || index == CLUSTER_ANY_HOST) {
        if (!c->setup.joins)
            return base_fail(BASE_ERR_USAGE, "this job takes no more workers");
        index = c->host_count; /* a host that comes back is a new one */
    }
    for (int i = 0; i < c->host_count; i++)
        workers += c->hosts[i].here ? c->hosts[i].workers : 0;
    if (workers > COMM_MAX_WORKERS || index >= CLUSTER_MAX_HOSTS)
        return base_fail(BASE_ERR_USAGE, "a job has at most %d workers", COMM_MAX_WORKERS);
    *index_p = index;
    return BASE_OK;
}

static base_status hear_join(struct cluster_coordinator *c, int link,
                             const struct cluster_message *m, double now)
{
    base_status st = BASE_OK;
    struct cluster_message refusal = {.type = CLUSTER_END};
    struct host *h;
    int index;

    st = admit(c, m, &index);
    if (st != BASE_OK) { /* it is told why, and closes the connection itself */
        refusal.code = (int)st;
        cluster_message_text(&refusal, base_message());
        cluster_say(c, link, &refusal);
        return BASE_OK;
    }
    if (index == c->host_count)
        c->host_count++;
    h = &c->hosts[index];
    *h = (struct host){
        .here = true, .link = link, .workers = m->workers, .pid = m->pid, .heard = now};
    snprintf(h->name, sizeof h->name, "%.63s", m->text);
    snprintf(h->address, sizeof h->address, "%s", m->address);
    cluster_tell(c, now,
                 json_pack("{s:s, s:i, s:o, s:s, s:i}", "event", "join", "host", index, "name",
                           base_json_text(h->name), "address", h->address, "workers", h->workers));
    if (c->phase != GATHERING)
        order(c, index, now);
    return BASE_OK;
}

/* ---- what agents say ---- */

static void hear_exit(struct cluster_coordinator *c, struct worker *w,
                      const struct cluster_message *m, double now)
{
    struct failure *f = &c->failure;

    cluster_tell(c, now,
                 json_pack("{s:s, s:I, s:i, s:I, s:i, s:i}", "event", "exit", "id",
                           (json_int_t)w->id, "host", w->host, "pid", (json_int_t)m->pid, "code",
                           m->code, "signal", m->signal));
    w->pid = m->pid;
    if (w->state == WORKER_DONE)
        c->finished++;
    else
        lose(c, w, "died", now);
    if (f->id == w->id && !f->exited) {
        f->exited = true;
        f->pid = m->pid;
        f->code = m->code;
        f->signal = m->signal;
        snprintf(f->lines, sizeof f->lines, "%.639s", m->text);
    }
    forget(c, w);
}

static void hear_suspicion(struct cluster_coordinator *c, struct worker *w,
                           const struct cluster_message *m, double now)
{
    struct worker *peer = find(c, m->peer);
    char why[96];

    if (m->view != c->view.number || peer == NULL || peer == w || !w->member || !peer->member ||
        w->state == WORKER_LEAVING || peer->state == WORKER_LEAVING)
        return; /* of an older view, or decided already */
    w->accuses |= UINT64_C(1) << (peer - c->workers);
    if ((peer->accuses >> (w - c->workers) & 1) != 0) {
        struct worker *leaves = w->id > peer->id ? w : peer;

        snprintf(why, sizeof why, "and worker %u do not reach each other",
                 leaves == w ? peer->id : w->id);
        evict(c, leaves, why, now);
    } else if (peer->suspected <= 0) {
        peer->suspected = now;
    }
}

static void hear_heartbeat(struct cluster_coordinator *c, int host, struct worker *w,
                           const struct cluster_message *m, double now)
{
    double *told = w != NULL ? &w->told : &c->hosts[host].told;

    if (w != NULL)
        w->view = m->view;
    *(w != NULL ? &w->load : &c->hosts[host].load) = m->load;
    if (now - *told < 1.0)
        return;
    *told = now;
    cluster_tell_load(c, now, m->id, host, &m->load);
}

static void hear_result(struct cluster_coordinator *c, struct worker *w,
                        const struct cluster_message *m)
{
    if (w->state != WORKER_READY)
        return;
    w->state = WORKER_DONE;
    if (c->result_id != 0 && c->result_id < w->id)
        return;
    json_decref(c->result);
    c->result = json_incref(m->body);
    c->result_id = w->id;
}

static void hear_stop(struct cluster_coordinator *c, const struct cluster_message *m, double now)
{
    if (c->phase == GATHERING || c->phase == STARTING_UP)
        fail(c, BASE_ERR_INTERRUPTED, now, "%s", m->text);
    if (c->phase != RUNNING)
        return;
    c->phase = STOPPING;
    stop_all(c, 0, m->text, now);
}

static base_status hear_worker(struct cluster_coordinator *c, int host,
                               const struct cluster_message *m, double now)
{
    struct worker *w = find(c, m->type == CLUSTER_LOST ? m->peer : m->id);

    if (w == NULL)
        return BASE_OK; /* gone in the meantime */
    if (w->host != host)
        return base_fail(BASE_ERR_DATA, "host %d speaks of worker %u, which is not its own", host,
                         w->id);
    switch (m->type) {
    case CLUSTER_READY:
        if (w->state != WORKER_STARTING)
            return base_fail(BASE_ERR_DATA, "worker %u is ready twice", w->id);
        w->state = WORKER_READY;
        w->slot = m->slot;
        w->port = m->port;
        w->pid = m->pid;
        c->arrivals = true;
        break;
    case CLUSTER_LOST:
        if (w->state != WORKER_DONE)
            lose(c, w, m->text, now);
        break;
    case CLUSTER_SUSPECT:
        hear_suspicion(c, w, m, now);
        break;
    case CLUSTER_RESULT:
        hear_result(c, w, m);
        break;
    case CLUSTER_EXITED:
        hear_exit(c, w, m, now);
        break;
    default:
        return base_fail(BASE_ERR_DATA, "an agent does not say '%s'", cluster_type_name(m->type));
    }
    return BASE_OK;
}

base_status cluster_coordinator_hear(struct cluster_coordinator *c, int link,
                                     const struct cluster_message *m, double now)
{
    base_status st = BASE_OK;
    int host = -1;

    for (int i = 0; i < c->host_count; i++)
        if (c->hosts[i].here && c->hosts[i].link == link)
            host = i;
    if (host < 0 && m->type == CLUSTER_HEARTBEAT)
        return BASE_OK; /* one that was refused and has not read it yet */
    if (host < 0 && m->type != CLUSTER_JOIN)
        return base_fail(BASE_ERR_DATA, "it says '%s' before it has joined",
                         cluster_type_name(m->type));
    if (host >= 0)
        c->hosts[host].heard = now;
    if (m->type == CLUSTER_JOIN && host >= 0)
        st = base_fail(BASE_ERR_DATA, "host %d joins twice", host);
    else if (m->type == CLUSTER_JOIN)
        st = hear_join(c, link, m, now);
    else if (m->type == CLUSTER_STOP)
        hear_stop(c, m, now);
    else if (m->type == CLUSTER_HEARTBEAT && (m->id == 0 || find(c, m->id) != NULL))
        hear_heartbeat(c, host, find(c, m->id), m, now);
    else if (m->type != CLUSTER_HEARTBEAT)
        st = hear_worker(c, host, m, now);
    consider(c, now);
    return st;
}

void cluster_coordinator_gone(struct cluster_coordinator *c, int link, const char *why, double now)
{
    for (int i = 0; i < c->host_count; i++)
        if (c->hosts[i].here && c->hosts[i].link == link)
            lose_host(c, i, why, now);
    consider(c, now);
}

/* ---- time ---- */

static void tick_hosts(struct cluster_coordinator *c, double now)
{
    char why[64];

    for (int i = 0; i < c->host_count; i++) {
        double silent = now - c->hosts[i].heard;

        snprintf(why, sizeof why, "was silent for %.1f s", silent);
        if (c->hosts[i].here && silent > c->setup.silence)
            lose_host(c, i, why, now);
    }
}

static void tick_workers(struct cluster_coordinator *c, double now)
{
    char why[64];

    for (int i = 0; i < COMM_MAX_WORKERS; i++) {
        struct worker *w = &c->workers[i];
        double silent = w->id != 0 ? now - c->hosts[w->host].heard : 0;

        snprintf(why, sizeof why, "was silent for %.1f s", silent);
        if (w->id != 0 && w->suspected > 0 && now - w->suspected >= GRACE)
            evict(c, w, "does not answer another worker", now);
        else if (w->id != 0 && w->state == WORKER_STARTING && now - w->since > c->setup.gather)
            evict(c, w, "did not become ready", now);
        if (w->id != 0 && w->state == WORKER_LEAVING && silent > QUIET)
            lose_host(c, w->host, why, now);
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
    fail(c, BASE_ERR_TIMEOUT, now, "host %s of %d did not come within %g s (--gather)", list,
         c->setup.hosts, c->setup.gather);
}

void cluster_coordinator_tick(struct cluster_coordinator *c, double now)
{
    const struct cluster_message beat = {.type = CLUSTER_HEARTBEAT, .load.step = -1};
    double stalled = now - c->last_tick - STALL;

    c->last_tick = now;
    if (now >= c->next_beat) { /* agents want to know that somebody is there, too */
        cluster_say_all(c, &beat);
        c->next_beat = now + (c->setup.silence / 8 > 0.5 ? 0.5 : c->setup.silence / 8);
    }
    if (stalled > 0) /* it was itself asleep: nobody else is to blame */
        for (int i = 0; i < c->host_count; i++)
            c->hosts[i].heard += stalled;
    tick_hosts(c, now);
    tick_workers(c, now);
    if (c->phase == GATHERING && now > c->deadline)
        name_absent(c, now);
    if (c->phase == FAILING && now > c->deadline)
        end(c);
    consider(c, now);
}
