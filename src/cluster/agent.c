/* SPDX-License-Identifier: MIT
 *
 * Set-up, loop and end of an agent. One thread polls everything; a second one watches the robust
 * words and raises the alarm by itself, so that waiting workers are free within microseconds of a
 * death.
 */
#include "cluster/agent.h"

#include <math.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "cluster/agent_private.h"

enum { MAX_FDS = 640 };
static const double TURN = 0.1, CONNECT_SECONDS = 6, REFUSED_SECONDS = 2, TELL_EVERY = 10;

/* ---- the watching thread ---- */

static void *watch(void *argument)
{
    struct agent *a = argument;
    int slot;

    while (!atomic_load(&a->closing)) {
        if (comm_host_watch(a->words, base_now() + 3600, &slot) != BASE_OK || slot < 0)
            continue;
        pthread_mutex_lock(&a->burial);
        if (comm_host_died(a->words, slot)) { /* not reaped yet: no other worker has the slot */
            uint64_t bit = UINT64_C(1) << slot;

            /* This comes first, so that hear_deaths knows before a worker hears the alarm. */
            atomic_fetch_or(&a->dead, bit);
            if ((atomic_fetch_and(&a->members, ~bit) & bit) != 0)
                comm_host_alarm(a->words, atomic_load(&a->view_number), atomic_load(&a->ids[slot]));
        }
        pthread_mutex_unlock(&a->burial);
        (void)eventfd_write(a->bell, 1);
    }
    return NULL;
}

static base_status start_watching(struct agent *a)
{
    base_status st = BASE_OK;

    TRY(comm_host_create(&a->words));
    pthread_mutex_init(&a->burial, NULL);
    a->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->bell < 0 || pthread_create(&a->watcher, NULL, watch, a) != 0)
        TRY(base_fail(BASE_ERR_MEMORY, "cannot start the agent's watching thread"));
    a->watched = true;
out:
    return st;
}

/* ---- set-up ---- */

/* The address by which this host reaches host 0 is the one by which it is reached. */
static base_status own_address(struct agent *a)
{
    struct sockaddr_storage at;
    socklen_t length = sizeof at;
    int fd = comm_stream_fd(comm_mailbox_stream(a->up));

    if (a->launch->bind[0] != '\0') {
        snprintf(a->address, sizeof a->address, "%s", a->launch->bind);
        return BASE_OK;
    }
    if (getsockname(fd, (struct sockaddr *)&at, &length) != 0 ||
        getnameinfo((struct sockaddr *)&at, length, a->address, sizeof a->address, NULL, 0,
                    NI_NUMERICHOST) != 0)
        return base_fail(BASE_ERR_NETWORK, "cannot tell this host's address; give --bind");
    return BASE_OK;
}

/* Host 0 may start up to `patience` seconds later than this one; a job that this host joins is
 * there already. If host 0 breaks off the handshake, the token may be wrong or there may be too
 * many handshakes at a time: such a refusal is final once it has been repeated for a while. */
static base_status connect_up(struct agent *a, double patience, struct comm_stream **stream_p)
{
    const struct cluster_launch *l = a->launch;
    struct comm_hello hello = {.role = "agent", .from = (uint32_t)l->host};
    double now = base_now(), deadline = now + patience, tell_at = now, refused = INFINITY;
    base_status st;

    for (;; now = base_now()) {
        double left =
            patience > 0 && deadline - now < CONNECT_SECONDS ? deadline - now : CONNECT_SECONDS;

        st = comm_connect(l->master, l->port, l->has_secret ? &l->secret : NULL, &hello, now + left,
                          stream_p);
        now = base_now();
        if (st == BASE_ERR_NETWORK && now < refused)
            refused = now;
        if (st == BASE_ERR_NETWORK && now - refused < REFUSED_SECONDS && base_stop_signal() == 0) {
            usleep(500 * 1000);
            continue;
        }
        if (st != BASE_ERR_IO && st != BASE_ERR_TIMEOUT)
            return base_prefix(st, "host 0");
        refused = INFINITY;
        if (base_stop_signal() != 0)
            return base_prefix(BASE_ERR_INTERRUPTED, "stopped while waiting for host 0");
        if (now >= deadline && patience == 0)
            return base_prefix(BASE_ERR_NETWORK, "there is no job to join");
        if (now >= deadline)
            return base_prefix(BASE_ERR_NETWORK, "host 0 did not come within %g s", patience);
        if (now >= tell_at) {
            base_info("waiting for host 0, %.0f s at most: %s", deadline - now, base_message());
            tell_at = now + TELL_EVERY;
        }
        usleep(100 * 1000);
    }
}

static base_status open_up(struct agent *a, const struct cluster_setup *setup)
{
    base_status st = BASE_OK;
    struct comm_stream *stream = NULL;
    int pair[2] = {-1, -1};
    bool first = setup != NULL && a->launch->host == 0;

    if (!first) {
        TRY(connect_up(a, setup != NULL ? a->launch->gather : 0, &stream));
    } else {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            TRY(base_fail(BASE_ERR_IO, "cannot make a pair of sockets: %m"));
        TRY(cluster_server_open(setup, pair[1], &a->server));
        TRY(comm_stream_of(pair[0], &stream));
        pair[0] = -1;
    }
    a->up = comm_mailbox_new(stream);
    TRY(own_address(a));
    if (!first)
        TRY(cluster_peers_open(a->launch, a->address, &a->peers));
out:
    if (pair[0] >= 0)
        close(pair[0]);
    return st;
}

static void say_join(struct agent *a, const struct cluster_setup *setup)
{
    struct cluster_message m = {
        .type = CLUSTER_JOIN,
        .version = CLUSTER_PROTOCOL,
        .host = setup != NULL ? (uint32_t)a->launch->host : CLUSTER_ANY_HOST,
        .workers = a->launch->workers,
        .port = a->peers != NULL ? cluster_peers_port(a->peers) : cluster_server_port(a->server),
        .pid = getpid()};

    gethostname(m.text, 64);
    m.text[63] = '\0';
    memcpy(m.address, a->address, sizeof m.address);
    if (setup != NULL)
        m.body = json_pack("{s:s, s:O?}", "program", setup->program, "job", setup->job);
    cluster_message_send(a->up, &m, -1);
    cluster_message_fini(&m);
}

/* Launchers bind each process to its cores; the agent's workers may use them all. */
static void unbind(const struct cluster_launch *l)
{
    cpu_set_t all;

    if (strcmp(l->source, "flags") == 0 || l->workers == 1)
        return;
    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(0, sizeof all, &all) != 0)
        base_warn("cannot use all cores: %m");
}

static base_status set_up(struct agent *a, const struct cluster_setup *setup)
{
    base_status st = BASE_OK;
    const struct cluster_launch *l = a->launch;

    base_stop_install(setup != NULL && setup->steps ? BASE_STOP_STEP : NULL);
    unbind(l);
    a->threads = l->threads > 0 ? l->threads : cluster_cores() / l->workers;
    if (a->threads < 1)
        a->threads = 1;
    a->environment = cluster_environment_new(l->workers, a->threads);
    a->one_speaks = setup != NULL && setup->one_speaks;
    a->oom_kills = cluster_monitor_oom_kills();
    TRY(start_watching(a));
    TRY(open_up(a, setup));
    cluster_steward_init(&a->steward, &cluster_agent_hands, a, l->silence, base_now());
    snprintf(a->steward.coordinator, sizeof a->steward.coordinator, "host 0 (%s:%u)", l->master,
             l->port);
    a->steward.succeeds = a->peers != NULL;
    say_join(a, setup);
out:
    return st;
}

static void tear_down(struct agent *a)
{
    base_progress_clear(); /* the progress line of a worker */
    for_each_worker(a, p)
        cluster_process_close(p);
    if (a->watched) {
        atomic_store(&a->closing, true);
        comm_host_poke(a->words);
        pthread_join(a->watcher, NULL);
        pthread_mutex_destroy(&a->burial);
    }
    if (a->up != NULL)
        base_ignore(comm_mailbox_flush(a->up, base_now() + 1));
    comm_mailbox_free(a->up);
    comm_mailbox_free(a->old);
    cluster_peers_close(a->peers);
    cluster_server_close(a->server);
    cluster_steward_fini(&a->steward);
    comm_host_close(a->words);
    cluster_regions_fini(&a->regions);
    cluster_environment_free(a->environment);
    if (a->bell >= 0)
        close(a->bell);
}

/* ---- the loop ---- */

static int watch_all(struct agent *a, struct pollfd *fds)
{
    int count = 0;

    fds[count++] = (struct pollfd){a->bell, POLLIN, 0};
    if (a->up != NULL)
        fds[count++] = (struct pollfd){comm_stream_fd(comm_mailbox_stream(a->up)),
                                       comm_mailbox_events(a->up), 0};
    for_each_worker(a, p) {
        fds[count++] = (struct pollfd){p->alive, POLLIN, 0};
        fds[count++] = (struct pollfd){p->output, POLLIN, 0}; /* poll skips -1 */
        if (p->box != NULL)
            fds[count++] = (struct pollfd){comm_stream_fd(comm_mailbox_stream(p->box)),
                                           comm_mailbox_events(p->box), 0};
    }
    if (a->server != NULL)
        count += cluster_server_watch(a->server, fds + count, MAX_FDS - count);
    if (a->peers != NULL)
        count += cluster_peers_watch(a->peers, fds + count, MAX_FDS - count);
    return count;
}

/* Hears every message that has come into `box`, from worker `p` or, if that is NULL, from the
 * coordinator. */
static base_status read_box(struct agent *a, struct comm_mailbox *box, struct cluster_process *p,
                            double now)
{
    base_status st = BASE_OK;
    struct cluster_message m;
    bool any;

    for (;;) {
        TRY(cluster_message_receive(box, &m, &any));
        if (!any)
            break;
        st = p != NULL ? cluster_steward_hear_worker(&a->steward, p->slot, &m, now)
                       : cluster_steward_hear_coordinator(&a->steward, &m, now);
        cluster_message_fini(&m);
        TRY(st);
    }
out:
    return st;
}

/* Hears of the workers that died since the last turn; the alarm has ended the waits of the others.
 * A dead worker may have been reaped before the watching thread told, and another one may have its
 * slot now. The last messages of the dead worker are read first: they may tell why it ended. */
static void hear_deaths(struct agent *a, double now)
{
    uint64_t dead = atomic_exchange(&a->dead, 0);
    eventfd_t rung;

    (void)eventfd_read(a->bell, &rung);
    for_each_worker(a, p) {
        if ((dead >> p->slot & 1) == 0 || !comm_host_died(a->words, p->slot))
            continue;
        if (p->box != NULL)
            base_ignore(read_box(a, p->box, p, now)); /* step_worker, too, sees that it is closed */
        cluster_steward_lose(&a->steward, p->slot, "died");
    }
}

static void step_worker(struct agent *a, struct cluster_process *p, double now)
{
    base_status st = BASE_OK;
    bool ended = cluster_process_reap(p); /* first: all its output can be read after its end */

    if (p->output >= 0)
        cluster_process_read(p);
    if (p->box != NULL)
        st = read_box(a, p->box, p, now);
    if (st != BASE_OK) {     /* it ends, or sent nonsense and is ended for it */
        hear_deaths(a, now); /* the first death is told first: this one may follow from it */
        comm_mailbox_free(p->box);
        p->box = NULL;
        cluster_steward_cut(&a->steward, p->slot,
                            st == BASE_ERR_PEER_LOST ? "died" : "sent nonsense", now);
    }
    if (ended)
        cluster_agent_bury(a, p);
}

static void hear_signals(struct agent *a)
{
    struct cluster_message m = {.type = CLUSTER_STOP};
    int number = base_stop_signal();

    if (number == 0 || a->told_stop || (cluster_steward_looks(&a->steward) && a->setup != NULL))
        return;
    a->told_stop = true;
    if (a->setup == NULL) {
        base_info("leaving the job: SIG%s", sigabbrev_np(number));
        a->steward.ended = true;
        return;
    }
    snprintf(m.text, sizeof m.text, "SIG%s on host %u", sigabbrev_np(number), a->steward.host);
    cluster_message_send(a->up, &m, -1);
}

static void read_coordinator(struct agent *a, double now)
{
    if (a->up != NULL && read_box(a, a->up, NULL, now) != BASE_OK && !a->steward.ended)
        cluster_steward_lose_coordinator(&a->steward, base_message(), now);
}

static base_status turn(struct agent *a)
{
    base_status st = BASE_OK;
    double now = base_now();

    cluster_steward_wake(&a->steward, now);
    hear_deaths(a, now);
    hear_signals(a);
    for_each_worker(a, p)
        step_worker(a, p, now);
    read_coordinator(a, now);
    if (a->peers != NULL)
        cluster_peers_step(a->peers, &a->steward, now);
    cluster_steward_tick(&a->steward, now);
    if (a->server != NULL && a->peers != NULL) { /* this host coordinates now */
        cluster_peers_close(a->peers);
        a->peers = NULL;
    }
    if (a->server != NULL) {
        TRY(cluster_server_step(a->server));
        read_coordinator(a, now);
    }
    for_each_worker(a, p) /* sends what was queued */
        if (p->box != NULL)
            base_ignore(comm_mailbox_flush(p->box, 0));
    if (a->up != NULL)
        base_ignore(comm_mailbox_flush(a->up, 0));
out:
    return st;
}

static base_status run(const struct cluster_launch *launch, const struct cluster_setup *setup,
                       const struct cluster_program *const *programs, json_t **result_p)
{
    struct agent *a = base_calloc(1, sizeof *a);
    struct pollfd fds[MAX_FDS];
    base_status st = BASE_OK;

    *result_p = NULL;
    a->launch = launch;
    a->setup = setup;
    a->programs = programs;
    a->bell = -1;
    TRY(set_up(a, setup));
    while (!cluster_steward_over(&a->steward, base_now())) {
        TRY(turn(a));
        if (!cluster_steward_over(&a->steward, base_now()))
            poll(fds, (nfds_t)watch_all(a, fds), (int)(1e3 * TURN));
    }
    if (a->server != NULL && a->steward.code == BASE_OK)
        *result_p = json_deep_copy(cluster_server_result(a->server));
    if (a->steward.code != BASE_OK)
        TRY(base_blame(base_fail(a->steward.code, "%s", a->steward.words), a->steward.blamed));
out:
    tear_down(a);
    base_free(a);
    return st;
}

base_status cluster_agent_run(const struct cluster_setup *setup, json_t **result_p)
{
    *result_p = NULL;
    if (setup->launch.idle)
        return BASE_OK;
    return run(&setup->launch, setup, setup->programs, result_p);
}

base_status cluster_agent_join(const struct cluster_launch *launch,
                               const struct cluster_program *const *programs)
{
    json_t *none;

    return run(launch, NULL, programs, &none);
}
