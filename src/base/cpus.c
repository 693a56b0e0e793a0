/* SPDX-License-Identifier: MIT
 *
 * Version 2 of control groups has cpu.max ("150000 100000": microseconds of each period, or "max"),
 * version 1 has cpu.cfs_quota_us and cpu.cfs_period_us. Inside a container the group's path may
 * lead nowhere below the mounted root; the root itself is looked at last, and is then its own.
 */
#include "base/cpus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

/* Up to two numbers of a file; how many there are. */
static int read_numbers(const char *folder, const char *name, double *first, double *second)
{
    char *path = base_format("%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    int count = file != NULL ? fscanf(file, "%lf %lf", first, second) : 0;

    if (file != NULL)
        fclose(file);
    base_free(path);
    return count;
}

static double limit_of(const char *folder)
{
    double quota = 0, period = 0, unused;

    if (read_numbers(folder, "cpu.max", &quota, &period) != 2 &&
        (read_numbers(folder, "cpu.cfs_quota_us", &quota, &unused) != 1 ||
         read_numbers(folder, "cpu.cfs_period_us", &period, &unused) != 1))
        return INFINITY;
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* Of a group and of those that it is in. `group` is cut. */
static double least_of(const char *root, char *group)
{
    double least = INFINITY;

    for (;;) {
        char *folder = base_format("%s%s", root, group), *slash = strrchr(group, '/');

        least = fmin(least, limit_of(folder));
        base_free(folder);
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* Is `cpu` among the controllers of "4:cpu,cpuacct:/group"? */
static bool counts_cpu(const char *line)
{
    const char *names = strchr(line, ':');

    return names != NULL && (strncmp(names, ":cpu,", 5) == 0 || strncmp(names, ":cpu:", 5) == 0 ||
                             strstr(names, ",cpu,") != NULL || strstr(names, ",cpu:") != NULL);
}

double base_cpus_limit(const char *cgroups, const char *root)
{
    FILE *file = fopen(cgroups, "re");
    double least = INFINITY;
    char line[4096];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *group = strchr(line, '/');

        if (group == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::", 3) == 0) {
            least = fmin(least, least_of(root, group));
        } else if (counts_cpu(line)) {
            char *mount = base_format("%s/cpu", root);

            least = fmin(least, least_of(mount, group));
            base_free(mount);
        }
    }
    if (file != NULL)
        fclose(file);
    return least;
}

static double own_limit(void)
{
    return base_cpus_limit("/proc/self/cgroup", "/sys/fs/cgroup");
}

double base_cpus_time(void)
{
    return base_world != NULL ? INFINITY : fmin(own_limit(), (double)sysconf(_SC_NPROCESSORS_ONLN));
}

int base_cpus(int cores)
{
    double limit = own_limit();

    if (limit < cores)
        cores = (int)ceil(limit);
    return cores > 1 ? cores : 1;
}

void base_cpu_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(name, size, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(name, size, "%.*s", (int)strcspn(colon + 1, "\n") - 1, colon + 2);
            break;
        }
    }
    if (file != NULL)
        fclose(file);
}
