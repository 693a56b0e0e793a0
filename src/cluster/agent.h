/* SPDX-License-Identifier: MIT
 *
 * The agent: the process a person starts on each host. It starts this host's workers (fork+exec of
 * this program), labels what they print, watches them (comm_host_watch, waitid, heartbeats), kills
 * and reaps the silent ones, and talks to the coordinator, which lives in the agent of host 0. When
 * the agent dies its workers end (PR_SET_PDEATHSIG and the closed control connection).
 */
#ifndef CLUSTER_AGENT_H
#define CLUSTER_AGENT_H

#include "base/events.h"
#include "base/json.h"
#include "cluster/launch.h"

struct cluster_setup {
    struct cluster_launch launch;
    const char *program; /* of cluster/worker.h */
    json_t *job;         /* host 0's is the one that counts; others may pass NULL */
    int least;           /* the fewest workers the program can go on with; 0: every loss ends it */
    bool joins;          /* the program takes workers that come later */
    bool restarts;       /* … and a new one is started for one that died */
    const char *status;  /* path of the Unix socket that answers `paceline status`; NULL: none */
    struct base_events *events; /* host 0: the coordinator's; written by this thread; NULL: none */
    bool one_speaks; /* rank 0 tells how the job goes: its lines are shown without a label */
    bool steps;      /* its workers do steps, of which Ctrl-C lets them finish one */
    bool folder;     /* the program tells (cluster_worker_folder) where both are to be instead */
};

/* From start to end of the job on this host; on the main thread, whose death ends the workers.
 * result_p (host 0): that of rank 0, the caller's; NULL elsewhere. A failure names the first failed
 * worker, its host, pid, exit code or signal, and its last log lines. Where another process of this
 * host is the agent (launch.idle) there is nothing to do. */
base_status cluster_agent_run(const struct cluster_setup *setup, json_t **result_p);

/* Adds this host's workers to the job whose host 0 listens at launch.master and launch.port. */
base_status cluster_agent_join(const struct cluster_launch *launch);

#endif
