/* SPDX-License-Identifier: MIT
 *
 * A job in the simulated world: an agent for each host, the coordinator at host 0's, and workers
 * that run a program. The coordinator (cluster/coordinator.h) and the program's side of the workers
 * (cluster/worker.c) are the real ones; sockets, processes and shared memory are simulated.
 */
#ifndef SIM_HOSTS_H
#define SIM_HOSTS_H

#include "cluster/worker.h"
#include "sim/network.h"
#include "sim/world.h"

enum { SIM_MAX_WORKERS = 4 * COMM_MAX_WORKERS }; /* with those that took the place of dead ones */

/* Draws a setting that a person may change while the job runs; false: there is none. */
typedef bool sim_change(const char **name_p, char *value, size_t room);

struct sim_job {
    const struct cluster_program *program;
    json_t *job;
    int hosts, workers[SIM_MAX_HOSTS];
    int min_workers; /* as in cluster_coordinator_setup */
    bool restarts;
    int guests;         /* the last of the hosts join … */
    double joins_after; /* … so many seconds after the beginning, at the earliest */
    double silence;
    sim_change *change; /* of the program; NULL: it has no settings */
};

struct sim_worker {
    uint32_t id; /* 0: none */
    int host;
    struct sim_process *process;
    double slowness; /* of its computing, 1 or more */
    bool ended;      /* the program has returned `st` with `words` */
    base_status st;
    char words[1024];
    bool joined; /* it has opened the group of a view */
    bool knows;  /* it had the state that a job goes on from */
    void *notes; /* the program's */
};

struct sim_end {
    bool over;      /* the coordinator has come to its end, with a result or without */
    base_code code; /* that it told */
    char text[1024];
    json_t *result;
};

/* Called on the world's first thread. Returns when every agent and every worker has ended or died.
 */
void sim_job_run(const struct sim_job *job, struct sim_end *end_p);

/* Of the running job. */
struct sim_worker *sim_workers(int *count_p);
int sim_host_of(uint32_t id);             /* of a worker; views number the hosts as they come */
struct sim_worker *sim_worker_self(void); /* of the caller's process; NULL: it is none */
struct sim_process *sim_agent_process(int host);
int sim_elections(void);         /* so many hosts have succeeded to coordinate */
int sim_coordinating_host(void); /* the last that began to */
void sim_job_stop(void);         /* as a person asks for at host 0 */
void sim_job_change(void);       /* as `paceline set` does at the host that coordinates */
cluster_check *sim_job_check(void);
void sim_host_kill(int host); /* as a power cut does: all processes, and no connection is closed */

#endif
