/* SPDX-License-Identifier: MIT */
#include "comm/futex.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { SPINS = 40, YIELDS = 100 };

static struct timespec time_of(double deadline)
{
    const double most = 1e9; /* some decades, in place of an infinite deadline */
    double at = deadline > 0 ? fmin(deadline, most) : 0;

    return (struct timespec){.tv_sec = (time_t)at, .tv_nsec = (long)(1e9 * (at - floor(at)))};
}

void comm_futex_wait(const struct comm_futex *words, int count, double deadline)
{
    struct futex_waitv waits[COMM_FUTEX_WORDS];
    struct timespec until = time_of(deadline);

    assert(count <= COMM_FUTEX_WORDS);
    for (int i = 0; i < count; i++)
        waits[i] = (struct futex_waitv){
            .val = words[i].seen, .uaddr = (uintptr_t)words[i].word, .flags = FUTEX_32};
    syscall(SYS_futex_waitv, waits, count, 0, &until, CLOCK_MONOTONIC);
}

void comm_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

base_status comm_futex_check(void)
{
    /* With nothing to wait for, a kernel that has the call answers EINVAL. */
    if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, CLOCK_MONOTONIC) < 0 && errno == EINVAL)
        return BASE_OK;
    return base_fail(BASE_ERR_IO, "shared memory needs the system call futex_waitv (Linux 5.16, "
                                  "and a container that allows it): %m");
}

struct comm_linger comm_linger_of(const _Atomic uint32_t *alarm)
{
    return (struct comm_linger){.alarm = alarm, .alarm_seen = atomic_load(alarm)};
}

/* A yield that takes long has met a process that computes. The kernel runs a woken sleeper ahead of
 * such processes, whereas a process that yields waits for the end of their turns. */
bool comm_linger(struct comm_linger *linger)
{
    if (linger->turns++ < SPINS) {
        comm_relax();
        return true;
    }
    if (linger->since == 0)
        linger->since = base_now();
    sched_yield();
    return linger->turns < SPINS + YIELDS && base_now() < linger->since + 0.2e-3 &&
           atomic_load_explicit(linger->alarm, memory_order_relaxed) == linger->alarm_seen;
}
