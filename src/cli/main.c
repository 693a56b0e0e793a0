/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#if defined(__x86_64__)
#    include <pmmintrin.h>
#endif

#include "cli/cli.h"

/* An OpenMP thread that waits spins for about a millisecond before it sleeps. Where another
 * program wants the core, too, that is ruinous: the spinner takes it from the thread it waits for
 * (a step measured 40 ms alone and 440 ms beside a compiler; with a short spin 45 and 90). libgomp
 * reads its environment before main, so the program starts itself once more. It does not if
 * the person has set the variable, nor if threads are to be bound to cores: libgomp has bound this
 * thread by now, and the new process would take its one core for all there are. */
static void bound_spinning(char **argv)
{
    static const char *const reasons[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND",
                                          "OMP_PLACES", "GOMP_CPU_AFFINITY"};

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (getenv(reasons[i]) != NULL)
            return;
    setenv("GOMP_SPINCOUNT", "1000", 1);
    execv("/proc/self/exe", argv); /* if that fails, this process goes on as it is */
}

/* A process that was started without a standard stream must not get a socket or a file in its
 * place, into which the log would be written. The streams are opened for reading only, so that
 * printing fails and the program notices. */
static void fill_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Floats below 1.2e-38 (denormals) count as zero, in this thread and in those that it starts: the
 * CPU takes a hundred cycles and more for each. The momentum of a weight without gradient becomes
 * such a number and stays one, because nine tenths of the least of them are rounded up to itself:
 * a step of mnist-cnn with batches of 16 took 8.7 ms at first and 22 ms after 2,500 steps. */
static void flush_denormals(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
#endif
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    flush_denormals();
    signal(SIGXFSZ, SIG_IGN); /* then a write beyond the limit (ulimit -f) fails and is reported */
    bound_spinning(argv);
    prctl(PR_SET_NAME, "paceline"); /* a process started as /proc/self/exe is called "exe" */
    return cli_main(argc, argv);
}
