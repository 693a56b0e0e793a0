/* SPDX-License-Identifier: MIT */
#include "cluster/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

int cluster_cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static void add(char **list, const char *name, const char *value, bool replace)
{
    size_t length = strlen(name), i = 0;

    while (list[i] != NULL && (strncmp(list[i], name, length) != 0 || list[i][length] != '='))
        i++;
    if (list[i] != NULL && !replace)
        return;
    base_free(list[i]);
    list[i] = base_format("%s=%s", name, value);
}

char **cluster_environment_new(int workers, int threads)
{
    size_t count = 0;
    char number[16], **list;

    while (environ[count] != NULL)
        count++;
    list = base_calloc(count + 4, sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = base_strdup(environ[i]);
    snprintf(number, sizeof number, "%d", threads);
    add(list, "OMP_NUM_THREADS", number, true);
    if (base_log_terminal())
        add(list, "PACELINE_PROGRESS", "1", true);
    if (workers * threads > cluster_cores())
        add(list, "OMP_WAIT_POLICY", "passive", false); /* unless the person has set it */
    return list;
}

void cluster_environment_free(char **environment)
{
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
        base_free(environment[i]);
    base_free(environment);
}

/* Runs between fork and exec of a process with threads, so it uses only calls that are safe in
 * signal handlers. */
static _Noreturn void become_worker(int control, int output, int parent, char *const *arguments,
                                    char *const *environment)
{
    sigset_t none;
    int null;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before the call above */
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Ctrl-C, and what launchers send to every process of a job, is for the agent. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(127);
    if (control == CLUSTER_CONTROL_FD ? fcntl(control, F_SETFD, 0) < 0
                                      : dup2(control, CLUSTER_CONTROL_FD) < 0)
        _exit(127);
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

static base_status spawn(struct cluster_process *p, int control, int output,
                         char *const *environment)
{
    char id[16];
    char *arguments[] = {"paceline", "worker", id, NULL};
    int parent = getpid();

    snprintf(id, sizeof id, "%u", p->id);
    p->pid = fork();
    if (p->pid == 0)
        become_worker(control, output, parent, arguments, environment);
    if (p->pid < 0)
        return base_fail(BASE_ERR_IO, "cannot start worker %u: %m", p->id);
    p->alive = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (p->alive < 0)
        return base_fail(BASE_ERR_IO, "cannot watch worker %u: %m", p->id);
    return BASE_OK;
}

base_status cluster_process_start(uint32_t id, int slot, char *const *environment,
                                  struct cluster_process **process_p)
{
    base_status st = BASE_OK;
    struct cluster_process *p = base_calloc(1, sizeof *p);
    struct comm_stream *stream = NULL;
    int control[2] = {-1, -1}, output[2] = {-1, -1};

    *process_p = NULL;
    *p = (struct cluster_process){.id = id, .slot = slot, .alive = -1, .output = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0 ||
        pipe2(output, O_CLOEXEC) != 0 || fcntl(output[0], F_SETFL, O_NONBLOCK) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot connect with worker %u: %m", id));
    p->output = output[0];
    TRY(comm_stream_of(control[0], &stream));
    control[0] = -1;
    p->box = comm_mailbox_new(stream);
    TRY(spawn(p, control[1], output[1], environment));
    *process_p = p;
    p = NULL;
out:
    if (control[0] >= 0)
        close(control[0]);
    if (control[1] >= 0)
        close(control[1]);
    if (output[1] >= 0)
        close(output[1]);
    cluster_process_close(p);
    return st;
}

void cluster_process_close(struct cluster_process *p)
{
    if (p == NULL)
        return;
    if (p->pid > 0) {
        cluster_process_kill(p);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    comm_mailbox_free(p->box);
    if (p->alive >= 0)
        close(p->alive);
    if (p->output >= 0)
        close(p->output);
    base_free(p);
}

/* Keeps the newest bytes, as many as fit. */
static void keep(struct cluster_process *p, const char *line, size_t count)
{
    const size_t room = sizeof p->tail - 1;

    if (count + 1 > room)
        count = room - 1;
    if (p->tail_used + count + 1 > room) {
        size_t drop = p->tail_used + count + 1 - room;

        memmove(p->tail, p->tail + drop, p->tail_used - drop);
        p->tail_used -= drop;
    }
    memcpy(p->tail + p->tail_used, line, count);
    p->tail_used += count;
    p->tail[p->tail_used++] = '\n';
    p->tail[p->tail_used] = '\0';
}

static void emit(struct cluster_process *p)
{
    p->line[p->line_used] = '\0';
    if (p->line[0] == BASE_PROGRESS_MARK)
        base_progress(true, "%s", p->line + 1);
    else if (p->speaks)
        base_relay("%s", p->line);
    else if (p->line_used > 0)
        base_relay("worker %u: %s", p->id, p->line);
    if (p->line_used > 0 && p->line[0] != BASE_PROGRESS_MARK)
        keep(p, p->line, p->line_used);
    p->line_used = 0;
}

void cluster_process_read(struct cluster_process *p)
{
    char bytes[4096];
    ssize_t count = 1;

    /* At most what a pipe holds: a worker that prints without end must not hold up the agent. */
    for (int left = 65536 / sizeof bytes;
         left > 0 && (count = read(p->output, bytes, sizeof bytes)) > 0; left--)
        for (ssize_t i = 0; i < count; i++) {
            if (bytes[i] == '\n' || p->line_used == sizeof p->line - 1)
                emit(p);
            if (bytes[i] != '\n' && bytes[i] != '\0')
                p->line[p->line_used++] = bytes[i];
        }
    if (count == 0) { /* the worker is gone and its pipe is empty */
        if (p->line_used > 0)
            emit(p);
        close(p->output);
        p->output = -1;
    }
}

/* Called once, when the process has ended. */
const char *cluster_process_tail(struct cluster_process *p)
{
    char *newline;

    if (p->output >= 0)
        cluster_process_read(p);
    if (p->line_used > 0)
        emit(p);
    if (p->tail_used > 0)
        p->tail[--p->tail_used] = '\0'; /* the last newline */
    newline = p->tail_used + 2 >= sizeof p->tail ? strchr(p->tail, '\n') : NULL;
    return newline != NULL ? newline + 1 : p->tail; /* not from the middle of a line */
}

bool cluster_process_reap(struct cluster_process *p)
{
    siginfo_t info = {0};
    struct rusage used;

    if (p->pid <= 0)
        return true;
    /* The C library's waitid does not give the usage. */
    if (syscall(SYS_waitid, P_PID, p->pid, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG,
                &used) != 0 ||
        info.si_pid == 0)
        return false;
    if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED) {
        p->stopped = info.si_code == CLD_STOPPED;
        base_warn("worker %u (pid %d) was %s", p->id, p->pid, p->stopped ? "stopped" : "continued");
        return false;
    }
    p->code = info.si_code == CLD_EXITED ? info.si_status : 0;
    p->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    p->peak_memory = 1024.0 * (double)used.ru_maxrss;
    p->pid = -p->pid; /* the kernel may reuse the pid: never kill it again */
    return true;
}

void cluster_process_kill(struct cluster_process *p)
{
    if (p->pid > 0)
        kill(p->pid, SIGKILL);
}
