/* SPDX-License-Identifier: MIT
 *
 * A worker's process, seen from its agent: started by fork+exec of this very program as
 * `paceline worker ID` with its control connection as descriptor 3, its output read line by line,
 * ended and reaped. It dies with the thread that started it (PR_SET_PDEATHSIG): that must be the
 * agent's main thread.
 */
#ifndef CLUSTER_PROCESS_H
#define CLUSTER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/monitor.h"
#include "comm/mailbox.h"

enum { CLUSTER_CONTROL_FD = 3, CLUSTER_TAIL = 640 };

struct cluster_process {
    uint32_t id;
    int slot, pid;
    struct comm_mailbox *box;
    int alive;  /* pidfd: readable once the process has ended */
    int output; /* pipe of what it prints */
    char line[1024], tail[CLUSTER_TAIL];
    size_t line_used, tail_used;
    bool speaks;                    /* it speaks for the job: its lines have no label */
    bool stopped;                   /* by SIGSTOP and the like */
    int code, signal;               /* once reaped */
    double peak_memory;             /* bytes, once reaped */
    struct cluster_monitor monitor; /* the agent uses it */
};

/* `environment` is the child's, a list that ends with NULL. */
base_status cluster_process_start(uint32_t id, int slot, char *const *environment,
                                  struct cluster_process **process_p);
/* Kills the process if it lives, reaps it and frees; accepts NULL. */
void cluster_process_close(struct cluster_process *process);

/* Passes on what it has printed, each line labelled with its id unless it speaks for the job, and
 * keeps the last ones. A progress line becomes the agent's own. */
void cluster_process_read(struct cluster_process *process);
/* Its last output, in whole lines. */
const char *cluster_process_tail(struct cluster_process *process);

/* Looks without waiting. True once the process has ended; also notes when it is stopped. */
bool cluster_process_reap(struct cluster_process *process);
/* With SIGKILL, which ends stopped processes, too. */
void cluster_process_kill(struct cluster_process *process);

/* The environment of this host's workers: this process's own, and `threads` compute threads for
 * each. If all of them together are more than the cores, they sleep while they wait. The list ends
 * with NULL; free it with cluster_environment_free. */
char **cluster_environment_new(int workers, int threads);
void cluster_environment_free(char **environment);
/* Cores this process may use. */
int cluster_cores(void);

#endif
