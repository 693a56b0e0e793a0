/* SPDX-License-Identifier: MIT
 *
 * The agent's state, shared by agent.c (set-up, loop, end) and agent_hands.c (what its steward has
 * it do). Everything belongs to the main thread but what is marked.
 */
#ifndef CLUSTER_AGENT_PRIVATE_H
#define CLUSTER_AGENT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/agent.h"
#include "cluster/peers.h"
#include "cluster/process.h"
#include "cluster/regions.h"
#include "cluster/server.h"
#include "cluster/steward.h"
#include "comm/host.h"

struct agent {
    const struct cluster_launch *launch;
    const struct cluster_setup *setup; /* NULL: joined a running job, which can go on without it */
    const struct cluster_program *const *programs;
    struct cluster_steward steward; /* makes this agent's decisions */
    struct cluster_server *server;  /* NULL unless this host coordinates */
    struct comm_mailbox *up;        /* to the coordinator; NULL: it is lost */
    struct comm_mailbox *old;       /* to the coordinator that was lost; it may come back */
    struct cluster_peers *peers;    /* other agents; NULL: this host coordinates */
    struct comm_host *words;
    struct cluster_regions regions;
    struct cluster_process *workers[COMM_MAX_WORKERS]; /* by slot */
    struct cluster_monitor monitor;
    int64_t oom_kills; /* kills by the kernel that are accounted for */
    char **environment;
    int threads;
    char address[COMM_ADDRESS_TEXT]; /* workers listen here */
    bool one_speaks;                 /* rank 0's lines are shown without a label */
    bool told_stop;
    /* Shared with the watching thread: */
    pthread_t watcher;
    bool watched;
    pthread_mutex_t burial; /* held while a death is told and while a slot is freed */
    int bell;               /* eventfd: the alive word of a worker died */
    _Atomic bool closing;
    _Atomic uint32_t view_number;
    _Atomic uint32_t ids[COMM_MAX_WORKERS];
    _Atomic uint64_t members; /* slots whose worker is in the view and not done */
    _Atomic uint64_t dead;    /* slots whose word died */
};

/* Every process that is not reaped yet; the body may free it. */
/* NOLINTBEGIN(bugprone-macro-parentheses): what the macro declares is a plain name */
#define for_each_worker(a, p)                                  \
    for (struct cluster_process *const *at = (a)->workers, *p; \
         at < (a)->workers + COMM_MAX_WORKERS; at++)           \
        if ((p = *at) == NULL)                                 \
            continue;                                          \
        else
/* NOLINTEND(bugprone-macro-parentheses) */

extern const struct cluster_hands cluster_agent_hands; /* take a struct agent */

/* After the process has ended: tells the steward how, and frees the slot. */
void cluster_agent_bury(struct agent *a, struct cluster_process *p);

#endif
