/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <math.h>
#include <time.h>

#include "base/thread.h"

static double read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double base_now(void)
{
    return base_world == NULL ? read_clock(CLOCK_MONOTONIC) : base_world->now();
}

double base_thread_cpu(void)
{
    return base_world == NULL ? read_clock(CLOCK_THREAD_CPUTIME_ID) : base_world->now();
}

double base_process_cpu(void)
{
    return base_world == NULL ? read_clock(CLOCK_PROCESS_CPUTIME_ID) : base_world->now();
}

struct timespec base_timespec(double moment)
{
    return (struct timespec){.tv_sec = (time_t)moment, .tv_nsec = (long)(fmod(moment, 1) * 1e9)};
}
