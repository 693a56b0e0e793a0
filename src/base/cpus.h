/* SPDX-License-Identifier: MIT
 *
 * How much CPU time control groups leave this process. A container with 1.5 CPUs on a machine of
 * 64 sees 64 cores, and 64 threads there are stopped most of the time.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <stddef.h>

/* Of `cores` that this process may run on, as many as it has time for, rounded up. */
int base_cpus(int cores);

/* CPU seconds a second that all processes of this one's groups have together: as many as there are
 * cores, or fewer. In a simulated world (base/thread.h) INFINITY. */
double base_cpus_time(void);

/* The least limit of the groups that `cgroups` (a file like /proc/self/cgroup) names, below `root`
 * (/sys/fs/cgroup), in CPUs; INFINITY: none. For tests; the others ask it. */
double base_cpus_limit(const char *cgroups, const char *root);

/* "AMD EPYC 7B13", of the first core; "unknown". */
void base_cpu_name(char *name, size_t size);

#endif
