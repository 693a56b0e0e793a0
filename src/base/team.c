/* SPDX-License-Identifier: MIT
 *
 * Units are taken by a compare-and-swap of one word, which holds the number of the round and how
 * many of its units are left. A thread that is late finds another round there, or none, and never
 * takes a unit of a round that is over. What describes the round is read after a unit was
 * taken, and the leader changes it only once all units are done.
 *
 * A helper that is about to sleep counts itself and looks for work once more; the leader publishes
 * a round and then looks for sleepers. Both are sequentially consistent, so one sees the other.
 */
#include "base/team.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/mem.h"

/* Seconds that a thread spins before it sleeps: longer than what is between two rounds of one
 * forward, or than a unit of a small one. A helper that sleeps costs the leader a system call and
 * comes some 50 us late. */
static const double PATIENCE = 100e-6;

enum { PAUSES = 8 }; /* between two looks at the clock */

struct helper {
    struct base_team *team;
    pthread_t thread;
    int index;
};

struct base_team {
    _Alignas(BASE_ALIGN) _Atomic uint64_t round; /* number << 32 | units that are left */
    _Alignas(BASE_ALIGN) _Atomic uint32_t done;  /* units of the round */
    _Atomic bool leader_sleeps;                  /* on `done` */
    _Alignas(BASE_ALIGN) _Atomic uint32_t bell;  /* changes when sleepers are to wake */
    _Atomic uint32_t sleepers;                   /* helpers that sleep on `bell`, or soon will */
    _Atomic bool ending;
    base_team_task *task; /* of the round */
    const void *context;
    uint32_t units;
    bool crowded; /* more threads than cores: none spins */
    int threads, started;
    struct helper helpers[];
};

/* ---- waiting ---- */

static bool may_spin(const struct base_team *team, double since)
{
    return !team->crowded && base_now() - since < PATIENCE;
}

static void spin(void)
{
    for (int i = 0; i < PAUSES; i++)
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void wake_helpers(struct base_team *team)
{
    if (atomic_load(&team->sleepers) == 0)
        return;
    atomic_fetch_add(&team->bell, 1);
    futex_wake(&team->bell);
}

/* ---- units ---- */

static bool has_units(struct base_team *team)
{
    return (uint32_t)atomic_load(&team->round) != 0;
}

/* Takes units of the round and calls the task; returns how many, 0: none was left. Few at a time,
 * so that all threads end together, but neighbours, which often read memory in its order. */
static uint32_t work(struct base_team *team, int thread)
{
    const uint32_t share = 2 * (uint32_t)team->threads;
    uint64_t round = atomic_load_explicit(&team->round, memory_order_acquire);
    uint32_t left, count;

    do {
        left = (uint32_t)round;
        count = (left + share - 1) / share;
        if (left == 0)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&team->round, &round, round - count,
                                                    memory_order_acq_rel, memory_order_acquire));
    for (uint32_t i = 0; i < count; i++)
        team->task(team->context, (int)(team->units - left + i), thread);
    return count;
}

/* ---- helpers ---- */

static void sleep_until_rung(struct base_team *team)
{
    const uint32_t seen = atomic_load(&team->bell);

    atomic_fetch_add(&team->sleepers, 1);
    if (!has_units(team) && !atomic_load(&team->ending))
        futex_wait(&team->bell, seen);
    atomic_fetch_sub(&team->sleepers, 1);
}

static void *help(void *argument)
{
    const struct helper *helper = argument;
    struct base_team *team = helper->team;
    double since = base_now();

    while (!atomic_load(&team->ending)) {
        const uint32_t count = work(team, helper->index);

        if (count > 0) {
            atomic_fetch_add(&team->done, count);
            if (atomic_load(&team->leader_sleeps))
                futex_wake(&team->done);
            since = base_now();
        } else if (may_spin(team, since)) {
            spin();
        } else {
            sleep_until_rung(team);
            since = base_now();
        }
    }
    return NULL;
}

/* ---- the leader ---- */

/* A helper has a unit in hand. */
static void wait_for_helpers(struct base_team *team, uint32_t units)
{
    const double since = base_now();
    uint32_t done;

    while ((done = atomic_load(&team->done)) != units)
        if (may_spin(team, since)) {
            spin();
        } else {
            atomic_store(&team->leader_sleeps, true);
            if (atomic_load(&team->done) == done)
                futex_wait(&team->done, done);
            atomic_store(&team->leader_sleeps, false);
        }
}

void base_team_run(struct base_team *team, int units, base_team_task *task, const void *context)
{
    const uint64_t number = (atomic_load_explicit(&team->round, memory_order_relaxed) >> 32) + 1;
    uint32_t mine = 0, count;

    if (units < 2 || team->threads == 1) {
        for (int unit = 0; unit < units; unit++)
            task(context, unit, 0);
        return;
    }
    team->task = task;
    team->context = context;
    team->units = (uint32_t)units;
    atomic_store_explicit(&team->done, 0, memory_order_relaxed);
    atomic_store(&team->round, number << 32 | (uint32_t)units);
    wake_helpers(team);
    while ((count = work(team, 0)) > 0)
        mine += count;
    if (atomic_fetch_add(&team->done, mine) + mine != (uint32_t)units)
        wait_for_helpers(team, (uint32_t)units);
}

/* ---- a team's life ---- */

static bool is_crowded(int threads)
{
    cpu_set_t cores;

    return threads > 1 && sched_getaffinity(0, sizeof cores, &cores) == 0 &&
           threads > base_cpus(CPU_COUNT(&cores));
}

/* Signals are for other threads: a helper does not know what to do about one. */
static base_status start_helpers(struct base_team *team)
{
    base_status st = BASE_OK;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (st == BASE_OK && team->started < team->threads - 1) {
        struct helper *helper = &team->helpers[team->started];

        *helper = (struct helper){.team = team, .index = team->started + 1};
        if (pthread_create(&helper->thread, NULL, help, helper) != 0)
            st = base_fail(BASE_ERR_MEMORY, "cannot start %d compute threads", team->threads);
        else
            team->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

base_status base_team_new(int threads, struct base_team **team_p)
{
    base_status st = BASE_OK;
    struct base_team *team = NULL;

    *team_p = NULL;
    TRY(base_tensor(1, sizeof *team + (size_t)(threads - 1) * sizeof team->helpers[0],
                    "a team of threads", &team));
    team->threads = threads;
    team->crowded = is_crowded(threads);
    TRY(start_helpers(team));
    *team_p = team;
    team = NULL;
out:
    base_team_free(team);
    return st;
}

void base_team_free(struct base_team *team)
{
    if (team == NULL)
        return;
    atomic_store(&team->ending, true);
    wake_helpers(team);
    for (int i = 0; i < team->started; i++)
        pthread_join(team->helpers[i].thread, NULL);
    base_free(team);
}

int base_team_threads(const struct base_team *team)
{
    return team->threads;
}
