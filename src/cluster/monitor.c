/* SPDX-License-Identifier: MIT */
#include "cluster/monitor.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *read_text(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, text, room - 1) : -1;

    if (fd >= 0)
        close(fd);
    text[count > 0 ? count : 0] = '\0';
    return text;
}

static double ticks(double count)
{
    return count / (double)sysconf(_SC_CLK_TCK);
}

double cluster_monitor_parse_stat(const char *text)
{
    const char *at = strrchr(text, ')'); /* the name before it may contain any character */
    unsigned long long user, system;

    /* After it come the state and ten more fields, then utime and stime. */
    if (at == NULL || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
                             &user, &system) != 2)
        return -1;
    return ticks((double)(user + system));
}

double cluster_monitor_parse_cpu(const char *text, double *all_p)
{
    unsigned long long t[8];
    double all = 0;

    *all_p = 0;
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
               &t[4], &t[5], &t[6], &t[7]) != 8)
        return -1;
    for (int i = 0; i < 8; i++)
        all += (double)t[i];
    *all_p = ticks(all);
    return ticks(all - (double)t[3] - (double)t[4]); /* all but idle time and waits for disks */
}

double cluster_monitor_parse_memory(const char *text)
{
    const char *total = strstr(text, "MemTotal:"), *free = strstr(text, "MemAvailable:");
    unsigned long long a, b;

    if (total == NULL || free == NULL || sscanf(total, "MemTotal: %llu kB", &a) != 1 ||
        sscanf(free, "MemAvailable: %llu kB", &b) != 1 || a < b)
        return -1;
    return 1024.0 * (double)(a - b);
}

/* The number of the line that begins with `name`, its space included; -1: there is none. */
static int64_t line_number(const char *text, const char *name)
{
    const char *at = text;
    size_t length = strlen(name);
    long long number;

    while (at != NULL && strncmp(at, name, length) != 0) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return at != NULL && sscanf(at + length, "%lld", &number) == 1 && number >= 0 ? number : -1;
}

double cluster_monitor_parse_oom(const char *text)
{
    return (double)line_number(text, "oom_kill ");
}

double cluster_monitor_parse_throttled(const char *text)
{
    int64_t micro = line_number(text, "throttled_usec "),
            nano = line_number(text, "throttled_time ");

    return micro >= 0 ? 1e-6 * (double)micro : nano >= 0 ? 1e-9 * (double)nano : -1;
}

double cluster_monitor_parse_squeezed(const char *text)
{
    unsigned long long micro;

    return sscanf(text, "some avg10=%*f avg60=%*f avg300=%*f total=%llu", &micro) == 1
               ? 1e-6 * (double)micro
               : -1;
}

double cluster_monitor_parse_waited(const char *text)
{
    unsigned long long nano;

    return sscanf(text, "%*u %llu", &nano) == 1 ? 1e-9 * (double)nano : -1;
}

/* A file of a cgroup, version 2 or 1: this process's group or, where a container hides its path,
 * the one that is mounted; or one of the whole machine. */
struct place {
    const char *before, *folder, *file; /* `before` its path in /proc/self/cgroup; NULL: mounted */
};

static const char *read_place(const struct place *p, const char *own, char *text, size_t room)
{
    const char *inside = p->before != NULL ? strstr(own, p->before) : "";
    char path[1024];

    text[0] = '\0';
    if (inside == NULL)
        return text;
    inside += p->before != NULL ? strlen(p->before) : 0;
    snprintf(path, sizeof path, "%s%.*s/%s", p->folder, (int)strcspn(inside, "\n"), inside,
             p->file);
    return read_text(path, text, room);
}

/* What the first of the places that has it says; -1: none does. A place without a file ends them.
 */
static double look_up(const struct place *places, double (*parse)(const char *text))
{
    char own[4096], text[16384];
    double value = -1;

    read_text("/proc/self/cgroup", own, sizeof own);
    for (; value < 0 && places->file != NULL; places++)
        value = parse(read_place(places, own, text, sizeof text));
    return value;
}

double cluster_monitor_throttled(void)
{
    static const struct place places[] = {
        {"0::", "/sys/fs/cgroup", "cpu.stat"},
        {":cpu:", "/sys/fs/cgroup/cpu", "cpu.stat"},
        {":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", "cpu.stat"},
        {NULL, "/sys/fs/cgroup", "cpu.stat"},
        {NULL, "/sys/fs/cgroup/cpu", "cpu.stat"},
        {0},
    };

    return look_up(places, cluster_monitor_parse_throttled);
}

double cluster_monitor_squeezed(void)
{
    static const struct place places[] = {
        {"0::", "/sys/fs/cgroup", "memory.pressure"},
        {NULL, "/sys/fs/cgroup", "memory.pressure"},
        {NULL, "/proc/pressure", "memory"},
        {0},
    };

    return look_up(places, cluster_monitor_parse_squeezed);
}

int64_t cluster_monitor_oom_kills(void)
{
    static const struct place places[] = {
        {"0::", "/sys/fs/cgroup", "memory.events"},
        {NULL, "/sys/fs/cgroup", "memory.events"},
        {":memory:", "/sys/fs/cgroup/memory", "memory.oom_control"},
        {NULL, "/sys/fs/cgroup/memory", "memory.oom_control"},
        {NULL, "/proc", "vmstat"},
        {0},
    };

    return (int64_t)look_up(places, cluster_monitor_parse_oom);
}

double cluster_monitor_waited(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    double seconds = -1;

    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        char path[300], text[128];
        double more;

        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
        more = cluster_monitor_parse_waited(read_text(path, text, sizeof text));
        if (more >= 0)
            seconds = more + (seconds > 0 ? seconds : 0);
    }
    if (tasks != NULL)
        closedir(tasks);
    return seconds;
}

/* The share of the `passed` seconds since the last look that was busy. */
static double share(struct cluster_monitor *m, double busy, double passed)
{
    double used = busy - m->busy;

    m->busy = busy;
    return passed > 0 && used > 0 ? used / passed : 0;
}

void cluster_monitor_process(struct cluster_monitor *m, int pid, double now,
                             struct cluster_load *load)
{
    char path[64], text[1024];
    unsigned long long pages = 0;
    double busy;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    busy = cluster_monitor_parse_stat(read_text(path, text, sizeof text));
    load->cpu = busy >= 0 ? share(m, busy, m->at > 0 ? now - m->at : 0) : 0;
    m->at = now;
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    if (sscanf(read_text(path, text, sizeof text), "%*u %llu", &pages) != 1)
        pages = 0;
    load->memory = (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void cluster_monitor_host(struct cluster_monitor *m, struct cluster_load *load)
{
    char text[4096];
    double all, busy = cluster_monitor_parse_cpu(read_text("/proc/stat", text, sizeof text), &all);

    load->cpu = busy >= 0 ? share(m, busy, m->all > 0 ? all - m->all : 0) : 0;
    m->all = all;
    load->memory = cluster_monitor_parse_memory(read_text("/proc/meminfo", text, sizeof text));
    if (load->memory < 0)
        load->memory = 0;
    load->load = strtod(read_text("/proc/loadavg", text, sizeof text), NULL);
}

void cluster_monitor_step(struct cluster_monitor *m, int64_t step, double now,
                          struct cluster_load *load)
{
    if (m->step_at > 0 && now > m->step_at && step >= m->step)
        m->step_rate = (double)(step - m->step) / (now - m->step_at);
    m->step = step;
    m->step_at = now;
    load->step = step;
    load->step_rate = m->step_rate;
}
