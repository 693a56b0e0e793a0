/* SPDX-License-Identifier: MIT */
#include "lab/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

enum {
    MAX_OUTPUT = 64 << 20, /* bytes of a result that are read */
    NOT_STARTED = 127,     /* exit code where the program cannot be */
};

static _Noreturn void become_training(const struct lab_child *c, pid_t parent, const char *program,
                                      char *const *words)
{
    int null;

    setpgid(0, 0); /* the terminal's signals are for the lab */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it died before the call above */
        _exit(1);
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(c->out, 1) < 0 || dup2(c->err, 2) < 0)
        _exit(NOT_STARTED);
    execvp(program, words);
    _exit(NOT_STARTED);
}

base_status lab_child_start(const char *program, char *const *words, struct lab_child *child_p)
{
    base_status st = BASE_OK;
    pid_t parent = getpid();

    *child_p = (struct lab_child){.alive = -1,
                                  .out = memfd_create("train-out", MFD_CLOEXEC),
                                  .err = memfd_create("train-err", MFD_CLOEXEC)};
    if (child_p->out < 0 || child_p->err < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot make a file for a run's output: %m"));
    child_p->pid = fork();
    if (child_p->pid == 0)
        become_training(child_p, parent, program, words);
    if (child_p->pid < 0) {
        child_p->pid = 0;
        TRY(base_fail(BASE_ERR_IO, "cannot start a run: %m"));
    }
    child_p->alive = (int)syscall(SYS_pidfd_open, child_p->pid, 0);
    if (child_p->alive < 0)
        TRY(base_fail(BASE_ERR_IO, "cannot watch a run: %m"));
out:
    if (st != BASE_OK)
        lab_child_close(child_p);
    return st;
}

void lab_child_ask(const struct lab_child *child)
{
    if (child->pid > 0)
        kill(child->pid, SIGTERM);
}

/* All that was written, terminated; NULL: it is too much. base_free. */
static char *read_all(int fd, size_t *count_p)
{
    struct stat about;
    char *text;
    ssize_t count;

    *count_p = 0;
    if (fstat(fd, &about) != 0 || about.st_size > MAX_OUTPUT)
        return NULL;
    text = base_calloc((size_t)about.st_size + 1, 1);
    count = pread(fd, text, (size_t)about.st_size, 0);
    *count_p = count > 0 ? (size_t)count : 0;
    text[*count_p] = '\0';
    return text;
}

/* Its warnings. The sentence of a failure, "paceline: …", is the status's. */
static void tell(const struct lab_child *child, const char *name, bool failed)
{
    size_t count;
    char *text = read_all(child->err, &count), *rest = text, *line;

    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0' && !(failed && strncmp(line, "paceline: ", 10) == 0))
            base_relay("%s: %s", name, line);
    base_free(text);
}

static base_status judge(int state, const json_t *result, bool exited_well)
{
    const char *said =
        json_string_value(json_object_get(json_object_get(result, "error"), "message"));

    if (WIFSIGNALED(state))
        return base_fail(BASE_ERR_PEER_LOST, "ended by signal %d (%s)", WTERMSIG(state),
                         strsignal(WTERMSIG(state)));
    if (said != NULL)
        return base_fail(BASE_ERR_DATA, "%s", said);
    if (!exited_well && WEXITSTATUS(state) == NOT_STARTED)
        return base_fail(BASE_ERR_DATA, "its program cannot be started: is it there?");
    if (!exited_well)
        return base_fail(BASE_ERR_DATA, "ended with code %d", WEXITSTATUS(state));
    return result != NULL ? BASE_OK : base_fail(BASE_ERR_DATA, "ended without a result");
}

base_status lab_child_finish(struct lab_child *child, const char *name, json_t **result_p)
{
    int state = 0;
    size_t count;
    char *text;
    base_status st;

    *result_p = NULL;
    while (waitpid(child->pid, &state, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    text = read_all(child->out, &count);
    if (text != NULL && count > 0)
        base_ignore(base_json_parse(text, count, result_p));
    base_free(text);
    tell(child, name, state != 0);
    st = judge(state, *result_p, WIFEXITED(state) && WEXITSTATUS(state) == 0);
    lab_child_close(child);
    return st;
}

void lab_child_close(struct lab_child *child)
{
    if (child->pid > 0) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        child->pid = 0;
    }
    for (int i = 0; i < 3; i++) {
        int *fd = i == 0 ? &child->alive : i == 1 ? &child->out : &child->err;

        if (*fd > 0)
            close(*fd);
        *fd = -1;
    }
}
