/* SPDX-License-Identifier: MIT
 *
 * What processes and the host are doing, read from /proc: CPU time used between two looks, resident
 * memory, load. A look costs a few small reads; nothing runs in between.
 */
#ifndef CLUSTER_MONITOR_H
#define CLUSTER_MONITOR_H

#include <stdint.h>

#include "cluster/message.h"

struct cluster_monitor { /* watches one process or the host; starts as zeros */
    double at;           /* time of the last look; 0: there was none */
    double busy, all;    /* CPU seconds until then; a host's: of all its cores */
    int64_t step;
    double step_rate;
    double step_at;
};

/* Sets cpu and memory of `load`; cpu is 0 at the first look. A process that is gone has zeros. */
void cluster_monitor_process(struct cluster_monitor *monitor, int pid, double now,
                             struct cluster_load *load);
/* Sets cpu, memory and load. */
void cluster_monitor_host(struct cluster_monitor *monitor, struct cluster_load *load);

/* Steps a second, from the steps of two looks; sets step and step_rate. */
void cluster_monitor_step(struct cluster_monitor *monitor, int64_t step, double now,
                          struct cluster_load *load);

/* Processes of this one's cgroup that the kernel has killed for memory; -1: it does not tell. */
int64_t cluster_monitor_oom_kills(void);
/* Seconds for which a CPU quota has kept this process's cgroup from running, and in which a process
 * of it waited for memory; -1: likewise. */
double cluster_monitor_throttled(void);
double cluster_monitor_squeezed(void);
/* Seconds for which threads of this process were ready and had no CPU; -1: likewise. */
double cluster_monitor_waited(void);

/* Parse texts of /proc; public for tests: CPU seconds of /proc/PID/stat; busy and all of
 * /proc/stat's first line; used bytes of /proc/meminfo; kills of memory.events and its kin; seconds
 * of cpu.stat, of memory.pressure and of /proc/PID/schedstat. A wrong text gives -1. */
double cluster_monitor_parse_stat(const char *text);
double cluster_monitor_parse_cpu(const char *text, double *all_p);
double cluster_monitor_parse_memory(const char *text);
double cluster_monitor_parse_oom(const char *text);
double cluster_monitor_parse_throttled(const char *text);
double cluster_monitor_parse_squeezed(const char *text);
double cluster_monitor_parse_waited(const char *text);

#endif
