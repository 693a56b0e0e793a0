/* SPDX-License-Identifier: MIT */
#include "base/stop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static volatile sig_atomic_t asked, complete;
static char answer[128]; /* to Ctrl-C; set before the handler is */

/* A handler may call what is safe in one: write is, the log's functions are not. */
static void ask(int signal)
{
    int kept = errno;

    if (complete)
        return;
    asked = signal;
    if (signal == SIGINT && answer[0] != '\0' && write(STDERR_FILENO, answer, strlen(answer)) < 0)
        answer[0] = '\0'; /* standard error is closed */
    errno = kept;
}

void base_stop_install(const char *words)
{
    /* SA_RESETHAND: the second signal has its default effect. */
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    struct sigaction hangup;

    complete = 0;      /* other work may have been, in this process */
    if (words != NULL) /* in place of the progress line */
        snprintf(answer, sizeof answer, "%s%s\n", base_log_terminal() ? "\r\033[J" : "", words);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* not with nohup */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

sigset_t base_stop_signals(void)
{
    sigset_t stops;

    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    return stops;
}

void base_stop_block(sigset_t *before_p)
{
    sigset_t stops = base_stop_signals();

    pthread_sigmask(SIG_BLOCK, &stops, before_p);
}

void base_stop_ask(int signal)
{
    if (asked == 0 && !complete)
        asked = signal;
}

int base_stop_signal(void)
{
    return asked;
}

void base_stop_late(void)
{
    complete = 1;
    asked = 0;
}
