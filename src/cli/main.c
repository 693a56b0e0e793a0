/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/cli.h"

/* An OpenMP thread that waits spins for about a millisecond before it sleeps. Where a core is
 * wanted by somebody else too, that is ruinous: the spinner takes it from the thread it waits for
 * (a step measured 40 ms alone and 440 ms beside a compiler; with a short spin 45 and 90). libgomp
 * reads its environment before main, so the program starts itself once more. What the person set
 * counts; nor does it where threads are to be bound to cores: libgomp has bound this one by now,
 * and the new start would take its one core for all there are. */
static void bound_spinning(char **argv)
{
    static const char *const reasons[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND",
                                          "OMP_PLACES", "GOMP_CPU_AFFINITY"};

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (getenv(reasons[i]) != NULL)
            return;
    setenv("GOMP_SPINCOUNT", "1000", 1);
    execv("/proc/self/exe", argv); /* if that fails, everything is as before */
}

/* Whoever was started without a standard stream must not get a socket or a file in its place, which
 * the log would be written into. For reading only: who cannot print is to know. */
static void fill_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit (ulimit -f) fails and is told of */
    bound_spinning(argv);
    prctl(PR_SET_NAME, "paceline"); /* of what was started as /proc/self/exe, that is "exe" */
    return cli_main(argc, argv);
}
