/* SPDX-License-Identifier: MIT */
#include "base/stop.h"

#include <signal.h>

static volatile sig_atomic_t asked, complete;

static void ask(int signal)
{
    if (!complete)
        asked = signal;
}

void base_stop_install(void)
{
    /* SA_RESETHAND: the second signal has its default effect. */
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    struct sigaction hangup;

    complete = 0; /* other work may have been, in this process */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* not with nohup */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void base_stop_ask(int signal)
{
    if (asked == 0)
        ask(signal);
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
