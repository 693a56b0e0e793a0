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
#include "cluster/worker.h"

struct cluster_setup {
    struct cluster_launch launch;
    const char *program;                           /* name of a program of cluster/worker.h */
    const struct cluster_program *const *programs; /* for its `check`; NULL-ended; or NULL */
    json_t *job;        /* host 0's is the one that counts; others may pass NULL */
    int least;          /* the fewest workers the program can go on with; 0: every loss ends it */
    bool joins;         /* the program takes workers that come later */
    bool restarts;      /* a new worker is started in place of one that died */
    const char *status; /* path of the Unix socket that answers `paceline status`; NULL: none */
    struct base_events *events; /* host 0: takes the coordinator's, from this thread; or NULL */
    bool one_speaks;   /* rank 0 tells how the job goes: its lines are shown without a label */
    bool steps;        /* its workers do steps; after Ctrl-C they finish the one they are in */
    bool tells_folder; /* status socket and events go where cluster_worker_folder tells */
    void (*on_folder)(const char *path); /* host 0: called with that folder; NULL: not */
};

/* Runs the job on this host from its start to its end. Call it on the main thread, whose death ends
 * the workers. *result_p: on host 0 rank 0's result, which the caller owns; NULL elsewhere. A
 * failure names the first failed worker, its host, pid, exit code or signal, and its last log
 * lines. Where another process of this host is the agent (launch.idle) there is nothing to do. */
base_status cluster_agent_run(const struct cluster_setup *setup, json_t **result_p);

/* Adds this host's workers to the job whose host 0 listens at launch.master and launch.port. It may
 * come to coordinate the job: `programs` as above. */
base_status cluster_agent_join(const struct cluster_launch *launch,
                               const struct cluster_program *const *programs);

#endif
