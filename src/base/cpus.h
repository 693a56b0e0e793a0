/* SPDX-License-Identifier: MIT
 *
 * How much CPU time control groups leave this process. A container with 1.5 CPUs on a machine of
 * 64 sees 64 cores, and 64 threads there are stopped most of the time.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

/* Of `cores` that this process may run on, as many as it has time for, rounded up. */
int base_cpus(int cores);

/* The least limit of the groups that `cgroups` (a file like /proc/self/cgroup) names, below `root`
 * (/sys/fs/cgroup), in CPUs; INFINITY: none. For tests; base_cpus asks it. */
double base_cpus_limit(const char *cgroups, const char *root);

#endif
