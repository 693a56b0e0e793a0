/* SPDX-License-Identifier: MIT
 *
 * The program's side of a worker: what it hears from its agent becomes state that the program waits
 * for (`lock`, `changed`), and what it says goes through an outlet. Bytes and heartbeats are the
 * business of the control thread (worker_control.c), or of a simulator.
 */
#include "cluster/worker.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/stop.h"
#include "cluster/worker_private.h"
#include "comm/secret.h"
#include "comm/transport.h"

/* Seconds that the agent has to answer for a region, and the coordinator to make the next view. */
static const double REGION_SECONDS = 60, VIEW_SECONDS = 120;

/* ---- messages from the agent ---- */

static void send_message(struct cluster_worker *w, const struct cluster_message *m)
{
    if (w->outlet.say != NULL)
        w->outlet.say(w->outlet.context, m);
}

static void hear_job(struct cluster_worker *w, struct cluster_message *m)
{
    base_status st = BASE_OK;
    double silence = 0;

    if (w->stage != CLUSTER_WORKER_WAITING)
        TRY(base_fail(BASE_ERR_DATA, "a second job"));
    if (json_object_get(m->body, "token") != NULL)
        /* No core file has the token, and no other process of this user can read it. */
        prctl(PR_SET_DUMPABLE, 0);
    TRY(base_json_real(m->body, "silence", &silence));
    w->order = *m;
    m->body = NULL;
    w->beat = cluster_heartbeat_interval(silence);
    w->stage = CLUSTER_WORKER_STARTED;
out:
    if (st != BASE_OK)
        cluster_worker_lose_agent(w, st, base_message());
}

/* Ends every wait. It does not make cluster_worker_stopping true: workers agree on that, and others
 * may go on. */
static void cancel(struct cluster_worker *w)
{
    atomic_store(&w->cancelled, true);
    if (w->endpoint != NULL)
        comm_endpoint_cancel(w->endpoint);
}

void cluster_worker_lose_agent(struct cluster_worker *w, base_status st, const char *words)
{
    w->stage = CLUSTER_WORKER_GONE;
    w->failure = st;
    snprintf(w->words, sizeof w->words, "%s", words);
    cancel(w);
    base_signal_wake(&w->changed);
}

void cluster_worker_hear(struct cluster_worker *w, struct cluster_message *m, int fd)
{
    switch (m->type) {
    case CLUSTER_JOB:
        hear_job(w, m);
        break;
    case CLUSTER_VIEW:
        w->view = m->members;
        if (w->since == 0 && comm_view_rank(&w->view, w->order.id) >= 0)
            w->since = w->view.number;
        atomic_store(&w->newest, m->members.number);
        if (w->endpoint != NULL)
            comm_endpoint_newer(w->endpoint, m->members.number);
        break;
    case CLUSTER_LOST:
        if (w->endpoint != NULL)
            comm_endpoint_lost(w->endpoint, m->view, m->peer);
        break;
    case CLUSTER_STOP:
        snprintf(w->words, sizeof w->words, "%s", m->text);
        if (m->code != 0)
            cancel(w);
        else
            atomic_store(&w->stopping, true);
        break;
    case CLUSTER_SETTINGS:
        if (cluster_settings_take(&w->settings, m->serial, m->body))
            atomic_store(&w->setting, m->serial);
        break;
    case CLUSTER_REGION:
        w->region = *m;
        w->region_fd = fd;
        w->region_waits = false;
        break;
    default: /* not for workers */
        break;
    }
    base_signal_wake(&w->changed);
}

void cluster_worker_heartbeat(const struct cluster_worker *w, struct cluster_message *m_p)
{
    *m_p = (struct cluster_message){.type = CLUSTER_HEARTBEAT,
                                    .id = w->order.id,
                                    .view = atomic_load(&w->working),
                                    .roles = atomic_load(&w->roles),
                                    .load.step = atomic_load(&w->step)};
}

/* ---- the program's thread ---- */

/* Call it under the lock: makes the control thread's failure this thread's. */
static base_status why_gone(const struct cluster_worker *w)
{
    return base_fail(w->failure, "%s", w->words);
}

static base_status get_region(void *context, const char *key, size_t bytes, int *fd_p)
{
    struct cluster_worker *w = context;
    struct cluster_message m = {.type = CLUSTER_REGION, .bytes = bytes};
    double deadline = base_now() + REGION_SECONDS;
    base_status st = BASE_OK;

    *fd_p = -1;
    snprintf(m.key, sizeof m.key, "%s", key);
    base_mutex_lock(&w->lock);
    w->region_waits = true; /* one thread asks at a time */
    base_mutex_unlock(&w->lock);
    send_message(w, &m);
    base_mutex_lock(&w->lock);
    while (w->region_waits && w->stage != CLUSTER_WORKER_GONE && base_now() < deadline)
        base_signal_wait(&w->changed, &w->lock, deadline);
    if (w->stage == CLUSTER_WORKER_GONE)
        TRY(why_gone(w));
    if (w->region_waits)
        TRY(base_fail(BASE_ERR_TIMEOUT, "the agent does not give shared memory %s", key));
    if (w->region.code != 0)
        TRY(base_fail((base_code)w->region.code, "%s", w->region.text));
    *fd_p = w->region_fd;
out:
    base_mutex_unlock(&w->lock);
    return st;
}

static base_status begin(struct cluster_worker *w)
{
    base_status st = BASE_OK;
    double deadline = base_now() + CLUSTER_START_SECONDS;

    base_mutex_lock(&w->lock);
    while (w->stage == CLUSTER_WORKER_WAITING && base_now() < deadline)
        base_signal_wait(&w->changed, &w->lock, deadline);
    if (w->stage == CLUSTER_WORKER_GONE)
        TRY(why_gone(w));
    if (w->stage == CLUSTER_WORKER_WAITING)
        TRY(base_fail(BASE_ERR_TIMEOUT, "the agent does not say what to do"));
out:
    base_mutex_unlock(&w->lock);
    return st;
}

static base_status open_endpoint(struct cluster_worker *w)
{
    base_status st = BASE_OK;
    struct cluster_message ready = {
        .type = CLUSTER_READY, .id = w->order.id, .slot = w->order.slot, .pid = getpid()};
    struct comm_endpoint_setup setup = {.id = w->order.id, .host = w->host, .context = w};
    const char *token = json_string_value(json_object_get(w->order.body, "token"));
    struct comm_endpoint *endpoint = NULL;
    struct comm_secret secret;

    if (w->host != NULL)
        setup.region = get_region;
    TRY(base_json_string(w->order.body, "name", &setup.job));
    setup.listen = json_string_value(json_object_get(w->order.body, "listen")); /* NULL: not */
    if (token != NULL) {
        st = comm_secret_parse(token, &secret);
        cluster_token_wipe(w->order.body);
        TRY(st);
        setup.secret = &secret;
    }
    TRY(comm_endpoint_open(&setup, &endpoint));
    base_mutex_lock(&w->lock);
    w->endpoint = endpoint;
    if (atomic_load(&w->cancelled)) /* cancelled before there was an endpoint */
        comm_endpoint_cancel(endpoint);
    base_mutex_unlock(&w->lock);
    ready.port = comm_endpoint_port(endpoint);
    send_message(w, &ready);
out:
    explicit_bzero(&secret, sizeof secret);
    return st;
}

static base_status run_program(struct cluster_worker *w, const struct cluster_program *const *list)
{
    base_status st = BASE_OK;
    struct cluster_message result = {.type = CLUSTER_RESULT, .id = w->order.id};
    const char *name;
    size_t count = 0;
    const struct cluster_program *program;

    while (list[count] != NULL)
        count++;
    TRY(base_json_string(w->order.body, "program", &name));
    TRY(base_registry_find("program", name, list, count, &program));
    TRY(program->run(w, json_object_get(w->order.body, "job"), &result.body));
    result.view = atomic_load(&w->working);
    send_message(w, &result);
out:
    cluster_message_fini(&result);
    return st;
}

/* The coordinator tells a failure of this worker's own (not caused by a loss or by the job's end)
 * once for all workers that have the same one, and it tells the job's end. This process then has
 * nothing to print. */
static void tell_failure(struct cluster_worker *w, base_status st)
{
    struct cluster_message m = {.type = CLUSTER_FAILED, .id = w->order.id, .code = (int)st};

    bool caused = st == BASE_ERR_PEER_LOST || st == BASE_ERR_TIMEOUT ||
                  st == BASE_ERR_INTERRUPTED || st == BASE_ERR_INTERNAL;

    if (st == BASE_OK || (caused && !atomic_load(&w->cancelled)))
        return;
    cluster_message_text(&m, base_message());
    if (!caused)
        send_message(w, &m);
    base_keep_message("%s", "");
}

void cluster_worker_init(struct cluster_worker *w)
{
    base_mutex_init(&w->lock);
    base_signal_init(&w->changed);
    w->region_fd = -1;
    atomic_store(&w->step, -1);
}

void cluster_worker_fini(struct cluster_worker *w)
{
    cluster_message_fini(&w->order);
    cluster_settings_fini(&w->settings);
    comm_endpoint_close(w->endpoint);
    base_signal_fini(&w->changed);
    base_mutex_fini(&w->lock);
}

base_status cluster_worker_serve(struct cluster_worker *w,
                                 const struct cluster_program *const *programs)
{
    base_status st = BASE_OK;

    TRY(begin(w));
    st = open_endpoint(w);
    if (st == BASE_OK)
        st = run_program(w, programs);
    tell_failure(w, st);
out:
    return st;
}

/* How the job was started, as the coordinator would tell it, where a launcher has started all
 * members of `view`. */
static json_t *launch_of(const struct comm_view *view)
{
    int workers[COMM_MAX_WORKERS] = {0}, hosts = 0, of_each;

    for (uint32_t i = 0; i < view->size; i++)
        hosts += workers[view->members[i].host]++ == 0;
    of_each = workers[view->members[0].host];
    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        if (workers[i] != 0 && workers[i] != of_each)
            of_each = 0;
    return json_pack("{s:i, s:i}", "workers", of_each, "hosts", hosts);
}

base_status cluster_worker_run_native(const struct comm_transport *transport,
                                      const struct cluster_program *program, const json_t *job,
                                      int threads, json_t **result_p)
{
    base_status st = BASE_OK;
    struct cluster_worker worker = {.stage = CLUSTER_WORKER_STARTED}, *w = &worker;
    struct comm_endpoint_setup setup = {.job = transport->name};
    json_t *result = NULL;

    *result_p = NULL;
    cluster_worker_init(w);
    TRY(transport->start(&w->view, &w->order.id));
    w->since = w->view.number;
    atomic_store(&w->newest, w->view.number);
    base_stop_install(NULL); /* there is no agent to hear signals */
    w->order.body = json_pack("{s:s, s:i, s:o}", "transport", transport->name, "threads", threads,
                              "launch", launch_of(&w->view));
    setup.id = w->order.id;
    TRY(comm_endpoint_open(&setup, &w->endpoint));
    TRY(program->run(w, job, &result));
    transport->end();
    if (comm_view_rank(&w->view, w->order.id) == 0) {
        *result_p = result;
        result = NULL;
    }
out:
    json_decref(result);
    cluster_worker_fini(w);
    return base_blame(base_prefix(st, "worker %u", w->order.id), w->order.id);
}

uint32_t cluster_worker_id(const struct cluster_worker *w)
{
    return w->order.id;
}

struct comm_endpoint *cluster_worker_endpoint(const struct cluster_worker *w)
{
    return w->endpoint;
}

const char *cluster_worker_transport(const struct cluster_worker *w)
{
    return json_string_value(json_object_get(w->order.body, "transport"));
}

int cluster_worker_threads(const struct cluster_worker *w)
{
    return (int)json_integer_value(json_object_get(w->order.body, "threads"));
}

json_t *cluster_worker_launch(const struct cluster_worker *w)
{
    if (w == NULL)
        return json_pack("{s:i, s:i}", "workers", 1, "hosts", 1);
    return json_incref(json_object_get(w->order.body, "launch"));
}

uint32_t cluster_worker_newest(const struct cluster_worker *w)
{
    return atomic_load(&w->newest);
}

uint32_t cluster_worker_since(struct cluster_worker *w)
{
    uint32_t since;

    base_mutex_lock(&w->lock);
    since = w->since;
    base_mutex_unlock(&w->lock);
    return since;
}

base_status cluster_worker_view(struct cluster_worker *w, uint32_t after, double deadline,
                                struct comm_view *view_p)
{
    base_status st = BASE_OK;

    base_mutex_lock(&w->lock);
    for (;;) {
        if (atomic_load(&w->cancelled))
            TRY(base_fail(BASE_ERR_INTERRUPTED, "the job ends: %s", w->words));
        if (w->view.number > after && comm_view_rank(&w->view, w->order.id) >= 0)
            break;
        if (base_now() >= deadline)
            TRY(base_fail(BASE_ERR_TIMEOUT, "no view came after view %u", after));
        base_signal_wait(&w->changed, &w->lock, deadline);
    }
    *view_p = w->view;
    atomic_store(&w->working, w->view.number);
out:
    base_mutex_unlock(&w->lock);
    return st;
}

void cluster_worker_step(struct cluster_worker *w, int64_t step)
{
    atomic_store_explicit(&w->step, step, memory_order_relaxed);
}

base_status cluster_worker_group(struct cluster_worker *w, double patience, struct comm_view *view,
                                 struct comm_group **group_p)
{
    base_status st = BASE_OK;

    *group_p = NULL;
    do {
        cluster_worker_leave(w, *group_p);
        *group_p = NULL;
        TRY(cluster_worker_view(w, view->number, base_now() + VIEW_SECONDS, view));
        st = comm_group_open(w->endpoint, view, cluster_worker_transport(w), base_now() + patience,
                             group_p);
    } while (st == BASE_ERR_PEER_LOST);
out:
    return st;
}

/* Where the group cannot name a lost worker, the agent may have told of one. */
void cluster_worker_leave(struct cluster_worker *w, struct comm_group *group)
{
    struct cluster_message m = {.type = CLUSTER_SUSPECT};

    if (group == NULL)
        return;
    m.id = w->order.id;
    m.view = comm_group_view(group)->number;
    m.peer = comm_group_lost(group);
    if (m.peer != 0)
        send_message(w, &m);
    comm_group_close(group);
}

void cluster_worker_accuse(struct cluster_worker *w, uint32_t view, uint32_t peer, const char *why)
{
    struct cluster_message m = {
        .type = CLUSTER_ACCUSE, .id = w->order.id, .view = view, .peer = peer};

    cluster_message_text(&m, why);
    send_message(w, &m);
}

void cluster_worker_roles(struct cluster_worker *w, unsigned roles)
{
    atomic_store(&w->roles, roles);
}

void cluster_worker_figures(struct cluster_worker *w, json_t *figures)
{
    struct cluster_message m = {
        .type = CLUSTER_FIGURES, .id = w->order.id, .body = json_incref(figures)};

    send_message(w, &m);
    cluster_message_fini(&m);
}

uint32_t cluster_worker_settings(struct cluster_worker *w, json_t **values_p)
{
    uint32_t number = atomic_load_explicit(&w->setting, memory_order_relaxed);

    if (values_p == NULL)
        return number;
    base_mutex_lock(&w->lock);
    number = w->settings.number;
    *values_p = json_deep_copy(w->settings.values); /* another thread takes the next ones */
    base_mutex_unlock(&w->lock);
    return number;
}

void cluster_worker_applied(struct cluster_worker *w, uint32_t number, int64_t step)
{
    struct cluster_message m = {
        .type = CLUSTER_APPLIED, .id = w->order.id, .serial = number, .step = step};

    send_message(w, &m);
}

void cluster_worker_folder(struct cluster_worker *w, const char *path)
{
    struct cluster_message m = {.type = CLUSTER_FOLDER, .id = w->order.id};

    cluster_message_text(&m, path);
    send_message(w, &m);
}

bool cluster_worker_stopping(const struct cluster_worker *w)
{
    return w->outlet.say == NULL ? base_stop_signal() != 0 : atomic_load(&w->stopping);
}
