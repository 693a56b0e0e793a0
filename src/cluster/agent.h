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
    const char *status;  /* path of the Unix socket that answers `paceline status`; NULL: none */
    struct base_events *events; /* NULL: none */
};

/* From start to end of the job on this host. result_p (host 0): rank 0's result. A failure names
 * the first failed worker, its host, pid, exit code or signal, and its last log lines. */
base_status cluster_agent_run(const struct cluster_setup *setup, json_t **result_p);

#endif
