/* SPDX-License-Identifier: MIT
 *
 * Two threads: the control thread owns the robust word and moves the mailbox's bytes; the program's
 * thread only queues messages there and waits for what the control thread hears (`lock`,
 * `changed`).
 */
#include "cluster/worker.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/stop.h"
#include "cluster/message.h"
#include "comm/host.h"
#include "comm/mailbox.h"
#include "comm/secret.h"
#include "comm/transport.h"

/* Seconds: until the agent has told what to do; until it has answered for a region; until the
 * coordinator has found the next view. */
static const double START_SECONDS = 60, REGION_SECONDS = 60, VIEW_SECONDS = 120;

enum stage { WAITING, STARTED, GONE }; /* GONE: the control connection, or it never came up */

struct cluster_worker {
    int bell;
    pthread_t control;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under `lock`: */
    struct comm_mailbox *box; /* NULL: there is no agent */
    enum stage stage;
    base_status failure; /* GONE: why */
    char words[1024];    /* of the failure, or why the job stops */
    bool closing;
    struct comm_view view;
    uint32_t since; /* number of the first view with this worker */
    struct cluster_message region;
    bool region_waits;
    int region_fd;
    struct comm_endpoint *endpoint;
    /* Set once, before STARTED: */
    struct cluster_message order;
    struct comm_host *host;
    double beat;
    /* Anybody's: */
    _Atomic uint32_t newest, working; /* views */
    _Atomic bool stopping, cancelled;
    _Atomic int64_t step;
};

/* ---- the control thread ---- */

/* From either thread; the control thread moves the bytes. */
static void send_message(struct cluster_worker *w, const struct cluster_message *m)
{
    pthread_mutex_lock(&w->lock);
    cluster_message_send(w->box, m, -1);
    pthread_mutex_unlock(&w->lock);
    (void)eventfd_write(w->bell, 1);
}

static void hear_job(struct cluster_worker *w, struct cluster_message *m)
{
    base_status st = BASE_OK;
    double silence = 0;
    int fd = comm_mailbox_take_fd(w->box);

    if (w->stage != WAITING)
        TRY(base_fail(BASE_ERR_DATA, "a second job"));
    if (json_object_get(m->body, "token") != NULL)
        prctl(PR_SET_DUMPABLE, 0); /* no core file, and no other process of this user reads it */
    TRY(base_json_real(m->body, "silence", &silence));
    TRY(comm_host_attach(fd, m->slot, &w->host));
    w->order = *m;
    m->body = NULL;
    w->beat = cluster_heartbeat_interval(silence);
    w->stage = STARTED;
out:
    if (fd >= 0)
        close(fd);
    if (st != BASE_OK) {
        w->stage = GONE;
        w->failure = st;
        snprintf(w->words, sizeof w->words, "%s", base_message());
    }
}

/* Every wait ends. No word of stopping: that is agreed on with the others, who may go on. */
static void cancel(struct cluster_worker *w)
{
    atomic_store(&w->cancelled, true);
    if (w->endpoint != NULL)
        comm_endpoint_cancel(w->endpoint);
}

static void hear(struct cluster_worker *w, struct cluster_message *m)
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
    case CLUSTER_REGION:
        w->region = *m;
        w->region_fd = comm_mailbox_take_fd(w->box);
        w->region_waits = false;
        break;
    default: /* not for workers */
        break;
    }
}

/* Everything that has come; under the lock. */
static base_status read_box(struct cluster_worker *w)
{
    base_status st = BASE_OK;
    struct cluster_message m;
    bool any;

    for (;;) {
        TRY(cluster_message_receive(w->box, &m, &any));
        if (!any)
            break;
        hear(w, &m);
        cluster_message_fini(&m);
    }
out:
    return st;
}

static void send_heartbeat(struct cluster_worker *w)
{
    struct cluster_message m = {.type = CLUSTER_HEARTBEAT,
                                .id = w->order.id,
                                .view = atomic_load(&w->working),
                                .load.step = atomic_load(&w->step)};

    cluster_message_send(w->box, &m, -1);
}

/* One turn; *beat_p: when the next heartbeat is due; `deadline`: of the job's coming. *fds: what to
 * wait for next; *ends_p: the program is at its end, and the last flush is all that is left. */
static base_status turn(struct cluster_worker *w, double *beat_p, double deadline,
                        struct pollfd fds[2], bool *ends_p)
{
    base_status st = BASE_OK;
    double now = base_now();

    pthread_mutex_lock(&w->lock);
    if (w->stage == STARTED && now >= *beat_p) {
        send_heartbeat(w);
        *beat_p = now + w->beat;
    }
    st = read_box(w);
    if (st == BASE_OK && w->stage == WAITING && now > deadline)
        st = base_fail(BASE_ERR_TIMEOUT, "the agent does not say what to do");
    if (st != BASE_OK) {
        w->stage = GONE;
        w->failure = st;
        snprintf(w->words, sizeof w->words, "the agent is gone: %s", base_message());
        cancel(w);
    }
    fds[0] = (struct pollfd){.fd = w->bell, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = comm_stream_fd(comm_mailbox_stream(w->box)),
                             .events = comm_mailbox_events(w->box)};
    *ends_p = w->closing;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return st;
}

static void *control(void *argument)
{
    struct cluster_worker *w = argument;
    double beat = 0, deadline = base_now() + START_SECONDS;
    struct pollfd fds[2];
    bool ends = false;

    while (turn(w, &beat, deadline, fds, &ends) == BASE_OK && !ends) {
        double left = w->stage == STARTED ? beat - base_now() : 0.25;
        eventfd_t rung;

        poll(fds, 2, left > 0 ? 1 + (int)(1e3 * left) : 0);
        (void)eventfd_read(w->bell, &rung);
    }
    pthread_mutex_lock(&w->lock);
    while (!w->closing) /* without an agent it only waits for the program's end */
        pthread_cond_wait(&w->changed, &w->lock);
    if (w->stage == STARTED)
        base_ignore(comm_mailbox_flush(w->box, base_now() + 5));
    pthread_mutex_unlock(&w->lock);
    comm_host_close(w->host); /* on the thread that attached: a clean end is no alarm */
    return NULL;
}

/* ---- the program's thread ---- */

static void wait_changed(struct cluster_worker *w, double deadline)
{
    struct timespec until = {.tv_sec = (time_t)deadline};

    until.tv_nsec = (long)(1e9 * (deadline - (double)until.tv_sec));
    pthread_cond_timedwait(&w->changed, &w->lock, &until);
}

/* Under the lock; the control thread's failure becomes this thread's. */
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
    pthread_mutex_lock(&w->lock);
    w->region_waits = true; /* one thread asks at a time */
    pthread_mutex_unlock(&w->lock);
    send_message(w, &m);
    pthread_mutex_lock(&w->lock);
    while (w->region_waits && w->stage != GONE && base_now() < deadline)
        wait_changed(w, deadline);
    if (w->stage == GONE)
        TRY(why_gone(w));
    if (w->region_waits)
        TRY(base_fail(BASE_ERR_TIMEOUT, "the agent does not give shared memory %s", key));
    if (w->region.code != 0)
        TRY(base_fail((base_code)w->region.code, "%s", w->region.text));
    *fd_p = w->region_fd;
out:
    pthread_mutex_unlock(&w->lock);
    return st;
}

static base_status begin(struct cluster_worker *w)
{
    base_status st = BASE_OK;
    double deadline = base_now() + START_SECONDS;

    pthread_mutex_lock(&w->lock);
    while (w->stage == WAITING && base_now() < deadline)
        wait_changed(w, deadline);
    if (w->stage == GONE)
        TRY(why_gone(w));
    if (w->stage == WAITING)
        TRY(base_fail(BASE_ERR_TIMEOUT, "the agent does not say what to do"));
out:
    pthread_mutex_unlock(&w->lock);
    return st;
}

static base_status open_endpoint(struct cluster_worker *w)
{
    base_status st = BASE_OK;
    struct cluster_message ready = {
        .type = CLUSTER_READY, .id = w->order.id, .slot = w->order.slot, .pid = getpid()};
    struct comm_endpoint_setup setup = {
        .id = w->order.id, .host = w->host, .region = get_region, .context = w};
    const char *token = json_string_value(json_object_get(w->order.body, "token"));
    struct comm_endpoint *endpoint = NULL;
    struct comm_secret secret;

    TRY(base_json_string(w->order.body, "name", &setup.job));
    setup.listen = json_string_value(json_object_get(w->order.body, "listen")); /* NULL: not */
    if (token != NULL) {
        st = comm_secret_parse(token, &secret);
        cluster_token_wipe(w->order.body);
        TRY(st);
        setup.secret = &secret;
    }
    TRY(comm_endpoint_open(&setup, &endpoint));
    pthread_mutex_lock(&w->lock);
    w->endpoint = endpoint;
    if (atomic_load(&w->cancelled)) /* before there was one */
        comm_endpoint_cancel(endpoint);
    pthread_mutex_unlock(&w->lock);
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

/* A failure of this worker's own, which neither a loss nor the job's end has caused, is told by the
 * coordinator, once for all workers that have the same; so is the job's end. This process has
 * nothing to print then. */
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

static void finish(struct cluster_worker *w)
{
    struct comm_endpoint *endpoint;

    pthread_mutex_lock(&w->lock);
    endpoint = w->endpoint;
    w->endpoint = NULL;
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    (void)eventfd_write(w->bell, 1);
    pthread_join(w->control, NULL);
    comm_endpoint_close(endpoint);
}

static void init(struct cluster_worker *w)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->region_fd = -1;
    atomic_store(&w->step, -1);
}

static void fini(struct cluster_worker *w)
{
    cluster_message_fini(&w->order);
    comm_mailbox_free(w->box);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    if (w->bell >= 0)
        close(w->bell);
}

base_status cluster_worker_run(int fd, const struct cluster_program *const *programs)
{
    base_status st = BASE_OK;
    struct cluster_worker worker = {.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, *w = &worker;
    struct comm_stream *stream = NULL;
    bool running = false;

    init(w);
    TRY(comm_stream_of(fd, &stream));
    w->box = comm_mailbox_new(stream);
    if (w->bell < 0 || pthread_create(&w->control, NULL, control, w) != 0)
        TRY(base_fail(BASE_ERR_MEMORY, "cannot start the worker's control thread"));
    running = true;
    TRY(begin(w));
    st = open_endpoint(w);
    if (st == BASE_OK)
        st = run_program(w, programs);
    tell_failure(w, st);
out:
    if (running)
        finish(w);
    fini(w);
    return st;
}

/* The same as the coordinator tells, where a launcher has started all members of `view`. */
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
    struct cluster_worker worker = {.bell = -1, .stage = STARTED}, *w = &worker;
    struct comm_endpoint_setup setup = {.job = transport->name};
    json_t *result = NULL;

    *result_p = NULL;
    init(w);
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
    comm_endpoint_close(w->endpoint);
    fini(w);
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

    pthread_mutex_lock(&w->lock);
    since = w->since;
    pthread_mutex_unlock(&w->lock);
    return since;
}

base_status cluster_worker_view(struct cluster_worker *w, uint32_t after, double deadline,
                                struct comm_view *view_p)
{
    base_status st = BASE_OK;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        if (atomic_load(&w->cancelled))
            TRY(base_fail(BASE_ERR_INTERRUPTED, "the job ends: %s", w->words));
        if (w->view.number > after && comm_view_rank(&w->view, w->order.id) >= 0)
            break;
        if (base_now() >= deadline)
            TRY(base_fail(BASE_ERR_TIMEOUT, "no view came after view %u", after));
        wait_changed(w, deadline);
    }
    *view_p = w->view;
    atomic_store(&w->working, w->view.number);
out:
    pthread_mutex_unlock(&w->lock);
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

/* Where the group itself does not know, the loss may be one that the agent told of. */
void cluster_worker_leave(struct cluster_worker *w, struct comm_group *group)
{
    struct cluster_message m = {.type = CLUSTER_SUSPECT};

    if (group == NULL)
        return;
    m.id = w->order.id;
    m.view = comm_group_view(group)->number;
    m.peer = comm_group_lost(group);
    if (m.peer == 0)
        m.peer = comm_endpoint_last_lost(w->endpoint, m.view);
    if (m.peer != 0)
        send_message(w, &m);
    comm_group_close(group);
}

void cluster_worker_folder(struct cluster_worker *w, const char *path)
{
    struct cluster_message m = {.type = CLUSTER_FOLDER, .id = w->order.id};

    cluster_message_text(&m, path);
    send_message(w, &m);
}

bool cluster_worker_stopping(const struct cluster_worker *w)
{
    return w->box == NULL ? base_stop_signal() != 0 : atomic_load(&w->stopping);
}
