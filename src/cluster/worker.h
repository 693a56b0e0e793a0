/* SPDX-License-Identifier: MIT
 *
 * A worker process, seen from inside: its control connection to the agent (a thread of its own
 * that also holds the robust word, sends heartbeats and hears of views and losses), its endpoint,
 * and the view it is in. The program it runs gets a `struct cluster_worker` and nothing else.
 */
#ifndef CLUSTER_WORKER_H
#define CLUSTER_WORKER_H

#include "cluster/roles.h"
#include "cluster/settings.h"
#include "comm/group.h"

struct cluster_worker;

/* A program that workers run; the job's "program" names it. A file of cli/programs provides
 * `const struct cluster_program cluster_program_NAME`. */
struct cluster_program {
    const char *name, *help;
    /* `job` is the job's description. Rank 0's *result_p is handed to the process that started the
     * job. */
    base_status (*run)(struct cluster_worker *worker, const json_t *job, json_t **result_p);
    cluster_check *check; /* NULL: nothing can change while the job runs */
};

extern const struct cluster_program *const cluster_program_registry[]; /* NULL-ended */
extern const size_t cluster_program_count;

/* Runs as a worker on the control connection `fd` until the program returns or the agent goes; the
 * process is expected to end after it. After a failure that the coordinator tells of, the kept
 * message is empty. */
base_status cluster_worker_run(int fd, const struct cluster_program *const *programs);

/* The same without an agent: this process is a worker that the launcher of a transport with
 * COMM_CAN_NATIVE started, and so are all others. *result_p: rank 0's result. */
struct comm_transport;
base_status cluster_worker_run_native(const struct comm_transport *transport,
                                      const struct cluster_program *program, const json_t *job,
                                      int threads, json_t **result_p);

uint32_t cluster_worker_id(const struct cluster_worker *worker);
struct comm_endpoint *cluster_worker_endpoint(const struct cluster_worker *worker);
const char *cluster_worker_transport(const struct cluster_worker *worker); /* NULL: automatic */
int cluster_worker_threads(const struct cluster_worker *worker);           /* compute threads */

/* How the job was started, not counting hosts that joined or were lost since: {"workers", "hosts"},
 * with the workers of each host, 0 if hosts had different numbers. A new reference. With worker
 * NULL, that of a process that works alone. */
json_t *cluster_worker_launch(const struct cluster_worker *worker);

/* The number of the newest view, 0 before the first. A program that lets hosts join looks at it now
 * and then; a view that follows a loss makes waits end anyway. */
uint32_t cluster_worker_newest(const struct cluster_worker *worker);

/* The number of the first view that this worker was a member of: 1 for those that were there from
 * the beginning. Holds once this worker was in one. */
uint32_t cluster_worker_since(struct cluster_worker *worker);

/* Waits for a view newer than `after` of which this worker is a member. BASE_ERR_INTERRUPTED: the
 * job ends. */
base_status cluster_worker_view(struct cluster_worker *worker, uint32_t after, double deadline,
                                struct comm_view *view_p);

/* The usual way into a view: takes the next one and connects with its members, which may take
 * `patience` seconds. *view: the last view this worker was in, zeros at first; becomes the new one.
 * A member that is lost meanwhile is reported, and the next view is waited for. After any other
 * failure *group_p may be a void group; pass it to cluster_worker_leave. */
base_status cluster_worker_group(struct cluster_worker *worker, double patience,
                                 struct comm_view *view, struct comm_group **group_p);
/* Reports the worker that the group takes for lost, if there is one, and closes the group. A
 * NULL group was left already. */
void cluster_worker_leave(struct cluster_worker *worker, struct comm_group *group);

/* Tells that this worker has found out, in the view of that number, that worker `peer` is wrong.
 * The coordinator believes it when more than half of the view's members say so: then `peer` is
 * lost to the others, and a new view begins. */
void cluster_worker_accuse(struct cluster_worker *worker, uint32_t view, uint32_t peer,
                           const char *why);

/* Notes, for heartbeats, that this worker has done `step`. It costs a relaxed store. */
void cluster_worker_step(struct cluster_worker *worker, int64_t step);

/* Tells, with heartbeats, what this process is there for: bits of enum cluster_role. */
void cluster_worker_roles(struct cluster_worker *worker, unsigned roles);
/* Tells what the program counts, an object, for `paceline status`. */
void cluster_worker_figures(struct cluster_worker *worker, json_t *figures);

/* Settings that a person has changed while the job runs (`paceline set`), all of them, as far as
 * this worker has heard. Other workers may hear of a change earlier or later, so the program's
 * workers must agree on when it holds; of two sets of settings that with the higher number is the
 * newer one. Returns the number, 0: nothing was changed. *values_p (unless NULL): {name: text}, a
 * new reference, or NULL. A call without values_p costs a relaxed load. */
uint32_t cluster_worker_settings(struct cluster_worker *worker, json_t **values_p);
/* Tells that the settings of that number hold from `step` on; one worker will do. */
void cluster_worker_applied(struct cluster_worker *worker, uint32_t number, int64_t step);

/* Tells that the job's files are in this folder. On host 0 the coordinator's events (cluster.jsonl)
 * and the socket that answers `paceline status` go there. */
void cluster_worker_folder(struct cluster_worker *worker, const char *path);

/* True if a person asked to stop (without an agent: this process got a signal). Workers agree on
 * the step after which they stop. When a job fails there is nothing to agree on: every wait ends in
 * BASE_ERR_INTERRUPTED. */
bool cluster_worker_stopping(const struct cluster_worker *worker);

#endif
