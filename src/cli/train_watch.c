/* SPDX-License-Identifier: MIT */
#include "cli/train_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

enum { LAST_WORDS = 5000 }; /* milliseconds that it has to end */

static pid_t watcher; /* 0: none */

/* Between fork and exec of a process that has threads: system calls alone. */
static _Noreturn void become_watcher(pid_t parent, char *const *words)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* the terminal's signals are for the training */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it died before the call above */
        _exit(1);
    nice(10); /* steps come first */
    execv("/proc/self/exe", words);
    _exit(1);
}

void cli_train_watch_begin(const char *folder)
{
    char name[] = "paceline", command[] = "watch";
    char *path = watcher == 0 ? realpath(folder, NULL) : NULL;
    char *words[] = {name, command, path, NULL};
    pid_t parent = getpid();

    if (path == NULL)
        return;
    watcher = fork();
    if (watcher == 0)
        become_watcher(parent, words);
    if (watcher < 0) {
        base_warn("--watch: cannot start a process: %m");
        watcher = 0;
    }
    free(path);
}

void cli_train_watch_end(void)
{
    struct pollfd alive;

    if (watcher == 0)
        return;
    alive = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, watcher, 0), .events = POLLIN};
    kill(watcher, SIGTERM);
    if (alive.fd < 0 || poll(&alive, 1, LAST_WORDS) <= 0)
        kill(watcher, SIGKILL);
    if (alive.fd >= 0)
        close(alive.fd);
    while (waitpid(watcher, NULL, 0) < 0 && errno == EINTR)
        ;
    watcher = 0;
}
