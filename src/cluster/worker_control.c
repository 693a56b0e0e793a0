/* SPDX-License-Identifier: MIT
 *
 * A worker's second thread: it owns the robust word of its slot, moves the bytes of the mailbox,
 * sends heartbeats and hands on what the agent says. The program's thread (worker.c) only queues
 * messages here.
 */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/worker_private.h"
#include "comm/host.h"
#include "comm/mailbox.h"

struct control {
    struct cluster_worker worker; /* its lock guards the mailbox, too */
    struct base_thread thread;
    int bell;
    struct comm_mailbox *box;
    bool closing; /* under the lock */
};

/* Called by either thread; the control thread moves the bytes. */
static void say(void *context, const struct cluster_message *m)
{
    struct control *c = context;

    base_mutex_lock(&c->worker.lock);
    cluster_message_send(c->box, m, -1);
    base_mutex_unlock(&c->worker.lock);
    (void)eventfd_write(c->bell, 1);
}

/* Takes the host's words, which come with the job. */
static base_status attach(struct cluster_worker *w, const struct cluster_message *m, int fd)
{
    base_status st = BASE_OK;

    if (m->type == CLUSTER_JOB && w->stage == CLUSTER_WORKER_WAITING)
        st = comm_host_attach(fd, m->slot, &w->host);
    if (m->type != CLUSTER_REGION && fd >= 0)
        close(fd);
    return st;
}

/* Hears everything that has come. Call it under the lock. */
static base_status read_box(struct control *c)
{
    base_status st = BASE_OK;
    struct cluster_message m;
    bool any;

    for (;;) {
        int fd;

        TRY(cluster_message_receive(c->box, &m, &any));
        if (!any)
            break;
        fd = comm_mailbox_take_fd(c->box);
        st = attach(&c->worker, &m, fd);
        if (st == BASE_OK)
            cluster_worker_hear(&c->worker, &m, fd);
        else
            cluster_worker_lose_agent(&c->worker, st, base_message());
        cluster_message_fini(&m);
    }
out:
    return st;
}

/* One turn. *beat_p: when the next heartbeat is due. `deadline`: when the job must have come. *fds:
 * what to wait for next. *ends_p: the program has ended, and only the last flush is left. */
static base_status turn(struct control *c, double *beat_p, double deadline, struct pollfd fds[2],
                        bool *ends_p)
{
    struct cluster_worker *w = &c->worker;
    base_status st = BASE_OK;
    double now = base_now();
    char words[1024];

    base_mutex_lock(&w->lock);
    if (w->stage == CLUSTER_WORKER_STARTED && now >= *beat_p) {
        struct cluster_message heartbeat;

        cluster_worker_heartbeat(w, &heartbeat);
        cluster_message_send(c->box, &heartbeat, -1);
        *beat_p = now + w->beat;
    }
    st = read_box(c);
    if (st == BASE_OK && w->stage == CLUSTER_WORKER_WAITING && now > deadline)
        st = base_fail(BASE_ERR_TIMEOUT, "the agent does not say what to do");
    if (st != BASE_OK) {
        snprintf(words, sizeof words, "the agent is gone: %s", base_message());
        cluster_worker_lose_agent(w, st, words);
    }
    fds[0] = (struct pollfd){.fd = c->bell, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = comm_stream_fd(comm_mailbox_stream(c->box)),
                             .events = comm_mailbox_events(c->box)};
    *ends_p = c->closing;
    base_mutex_unlock(&w->lock);
    return st;
}

static void *control(void *argument)
{
    struct control *c = argument;
    struct cluster_worker *w = &c->worker;
    double beat = 0, deadline = base_now() + CLUSTER_START_SECONDS;
    struct pollfd fds[2];
    bool ends = false;

    while (turn(c, &beat, deadline, fds, &ends) == BASE_OK && !ends) {
        double left = w->stage == CLUSTER_WORKER_STARTED ? beat - base_now() : 0.25;
        eventfd_t rung;

        poll(fds, 2, left > 0 ? 1 + (int)(1e3 * left) : 0);
        (void)eventfd_read(c->bell, &rung);
    }
    base_mutex_lock(&w->lock);
    while (!c->closing) /* without an agent it only waits for the program's end */
        base_signal_wait(&w->changed, &w->lock, INFINITY);
    if (w->stage == CLUSTER_WORKER_STARTED)
        base_ignore(comm_mailbox_flush(c->box, base_now() + 5));
    base_mutex_unlock(&w->lock);
    comm_host_close(w->host); /* on the thread that attached: a clean end is no alarm */
    return NULL;
}

static void finish(struct control *c)
{
    struct cluster_worker *w = &c->worker;
    struct comm_endpoint *endpoint;

    base_mutex_lock(&w->lock);
    endpoint = w->endpoint;
    w->endpoint = NULL;
    c->closing = true;
    base_signal_wake(&w->changed);
    base_mutex_unlock(&w->lock);
    (void)eventfd_write(c->bell, 1);
    base_thread_join(&c->thread);
    comm_endpoint_close(endpoint);
}

base_status cluster_worker_run(int fd, const struct cluster_program *const *programs)
{
    base_status st = BASE_OK;
    struct control state = {.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, *c = &state;
    struct comm_stream *stream = NULL;
    bool running = false;

    c->worker.outlet = (struct cluster_outlet){say, c};
    cluster_worker_init(&c->worker);
    TRY(comm_stream_of(fd, &stream));
    c->box = comm_mailbox_new(stream);
    if (c->bell < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot make an eventfd: %m"));
    TRY(base_thread_start(&c->thread, "control", control, c));
    running = true;
    st = cluster_worker_serve(&c->worker, programs);
out:
    if (running)
        finish(c);
    comm_mailbox_free(c->box);
    cluster_worker_fini(&c->worker);
    if (c->bell >= 0)
        close(c->bell);
    return st;
}
