/* SPDX-License-Identifier: MIT
 *
 * The insides of a worker, shared by worker.c (the program's side) and worker_control.c (the thread
 * that talks to the agent). A simulated agent (tests/sim) takes the place of the latter.
 */
#ifndef CLUSTER_WORKER_PRIVATE_H
#define CLUSTER_WORKER_PRIVATE_H

#include <stdatomic.h>

#include "base/thread.h"
#include "cluster/message.h"
#include "cluster/worker.h"

/* Seconds that the agent has to send the job. */
#define CLUSTER_START_SECONDS 60.0

/* GONE: the control connection is closed, or never came up. */
enum cluster_worker_stage { CLUSTER_WORKER_WAITING, CLUSTER_WORKER_STARTED, CLUSTER_WORKER_GONE };

/* Where a worker's messages to its agent go; called from any thread, with or without the lock. */
struct cluster_outlet {
    void (*say)(void *context, const struct cluster_message *message); /* NULL: there is no agent */
    void *context;
};

struct cluster_worker {
    struct cluster_outlet outlet;
    struct base_mutex lock;
    struct base_signal changed;
    /* Under `lock`: */
    enum cluster_worker_stage stage;
    base_status failure; /* GONE: the reason */
    char words[1024];    /* the failure's message, or why the job stops */
    struct comm_view view;
    uint32_t since; /* number of this worker's first view */
    struct cluster_message region;
    bool region_waits;
    int region_fd;
    struct comm_endpoint *endpoint;
    struct cluster_settings settings;
    /* Set once, before STARTED: */
    struct cluster_message order;
    struct comm_host *host; /* NULL: this worker shares memory with no other */
    double beat;            /* seconds between heartbeats */
    /* Used by any thread: */
    _Atomic uint32_t newest, working; /* the newest view; the one it works in */
    _Atomic uint32_t setting;         /* number of the newest settings */
    _Atomic bool stopping, cancelled;
    _Atomic int64_t step;
    _Atomic uint32_t roles;
};

void cluster_worker_init(struct cluster_worker *worker); /* from zeros and an outlet */
void cluster_worker_fini(struct cluster_worker *worker);

/* Hears a message of the agent. Call it under the lock. `fd` is the descriptor that came with it,
 * -1: none; this takes it over if `message` is a region. */
void cluster_worker_hear(struct cluster_worker *worker, struct cluster_message *message, int fd);
/* The agent is gone: ends every wait. Call it under the lock. */
void cluster_worker_lose_agent(struct cluster_worker *worker, base_status st, const char *words);
void cluster_worker_heartbeat(const struct cluster_worker *worker,
                              struct cluster_message *message_p);

/* On the program's thread: waits for the job, opens the endpoint, says `ready`, runs the program
 * and tells its result. */
base_status cluster_worker_serve(struct cluster_worker *worker,
                                 const struct cluster_program *const *programs);

#endif
