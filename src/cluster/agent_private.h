/* SPDX-License-Identifier: MIT
 *
 * The agent's state, shared by agent.c (set-up, loop, end) and agent_hear.c (what it is told and
 * what it does about it). Everything belongs to the main thread but what is marked.
 */
#ifndef CLUSTER_AGENT_PRIVATE_H
#define CLUSTER_AGENT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/agent.h"
#include "cluster/process.h"
#include "cluster/regions.h"
#include "cluster/server.h"
#include "comm/host.h"

struct agent {
    const struct cluster_launch *launch;
    struct cluster_server *server; /* host 0 */
    struct comm_mailbox *up;       /* to the coordinator; NULL: lost */
    struct comm_host *words;
    struct cluster_regions regions;
    struct cluster_process *workers[COMM_MAX_WORKERS]; /* by slot */
    struct cluster_monitor monitor;
    int64_t oom_kills; /* that are accounted for */
    json_t *order;     /* body of CLUSTER_JOB */
    char **environment;
    uint32_t host;
    int threads;
    char address[COMM_ADDRESS_TEXT]; /* workers listen here */
    struct comm_view view;
    double silence, next_beat, last_turn, heard; /* heard: the coordinator */
    bool one_speaks;                             /* rank 0, for the job */
    bool guest; /* it joined a running job, which goes on without it */
    bool told_stop;
    bool alone; /* the coordinator is gone */
    double alone_until;
    bool ended;
    base_code code;
    uint32_t blamed; /* the first failed worker */
    char words_of_end[1024];
    /* Shared with the watching thread: */
    pthread_t watcher;
    bool watched;
    pthread_mutex_t burial; /* no slot is given away while its worker's death is told */
    int bell;               /* eventfd: a word died */
    _Atomic bool closing;
    _Atomic uint32_t view_number;
    _Atomic uint32_t ids[COMM_MAX_WORKERS];
    _Atomic uint64_t members; /* slots whose worker is in the view and not done */
    _Atomic uint64_t dead;    /* slots whose word died */
};

/* Every process that is not reaped yet; the body may bury it. */
/* NOLINTBEGIN(bugprone-macro-parentheses): what the macro declares is a plain name */
#define for_each_worker(a, p)                                  \
    for (struct cluster_process *const *at = (a)->workers, *p; \
         at < (a)->workers + COMM_MAX_WORKERS; at++)           \
        if ((p = *at) == NULL)                                 \
            continue;                                          \
        else
/* NOLINTEND(bugprone-macro-parentheses) */

/* Sends `m` to the coordinator, if there is one. */
void cluster_agent_say(struct agent *a, const struct cluster_message *m);
base_status cluster_agent_hear_coordinator(struct agent *a, const struct cluster_message *m);
base_status cluster_agent_hear_worker(struct agent *a, struct cluster_process *p,
                                      const struct cluster_message *m);
/* Tells workers of this host and the coordinator that `p` is no more to be counted on. */
void cluster_agent_lose(struct agent *a, struct cluster_process *p, const char *why);
/* `p` has ended: tells it, frees it and its slot. */
void cluster_agent_bury(struct agent *a, struct cluster_process *p);
/* The coordinator is gone: workers may save, then this host ends. */
void cluster_agent_lose_coordinator(struct agent *a, const char *why);

#endif
