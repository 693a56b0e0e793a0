/* SPDX-License-Identifier: MIT
 *
 * Sleeping on words of shared memory: futexes between processes, several at a time.
 */
#ifndef COMM_FUTEX_H
#define COMM_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { COMM_FUTEX_WORDS = 128 }; /* the kernel's limit for one wait */

struct comm_futex {
    _Atomic uint32_t *word;
    uint32_t seen; /* the wait does not sleep if *word differs from this */
};

/* Sleeps until another thread or process wakes one of the words or `deadline` (base_now) passes. It
 * may also return for no reason, so the caller checks what it waits for. */
void comm_futex_wait(const struct comm_futex *words, int count, double deadline);
void comm_futex_wake(_Atomic uint32_t *word); /* wakes all that sleep on it */

base_status comm_futex_check(void); /* fails, with the remedy, where the kernel is too old */

/* Waiting without sleep, for as long as that is better: about a microsecond of spinning, which
 * costs no other process anything, then turns that give the core away (sched_yield). */
struct comm_linger {
    const _Atomic uint32_t *alarm; /* the host's alarm word: lingering ends when it changes */
    uint32_t alarm_seen;
    int turns;
    double since; /* when it first called sched_yield */
};

struct comm_linger comm_linger_of(const _Atomic uint32_t *alarm);
/* Waits one more turn; false: it is time to sleep. */
bool comm_linger(struct comm_linger *linger);

/* One turn of a spin: a hint to the CPU, without a system call. */
static inline void comm_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
