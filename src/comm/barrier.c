/* SPDX-License-Identifier: MIT
 *
 * The last rank to arrive opens the way: it takes the number of arrivals back to zero, then changes
 * the turn that the others look at. An early rank of the next turn finds zero arrivals, since it
 * has seen the turn change.
 */
#include "comm/barrier.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm_private.h"
#include "comm/futex.h"

void comm_barrier_init(struct comm_barrier *barrier, struct comm_group *group,
                       struct comm_barrier_words *words, const int *ranks, int count)
{
    *barrier = (struct comm_barrier){.group = group, .words = words, .count = count, .me = -1};
    barrier->alarm = comm_host_alarm_word(group->endpoint->setup.host);
    memcpy(barrier->ranks, ranks, (size_t)count * sizeof *ranks);
    for (int i = 0; i < count; i++)
        if (ranks[i] == group->rank)
            barrier->me = i;
    assert(barrier->me >= 0);
}

base_status comm_barrier_open(struct comm_barrier *barrier, struct comm_group *group,
                              const char *key, const int *ranks, int count)
{
    struct comm_shared shared;
    base_status st = comm_group_share(group, key, sizeof *barrier->words, &shared);

    if (st != BASE_OK)
        return st;
    comm_barrier_init(barrier, group, shared.at, ranks, count);
    barrier->shared = shared;
    return BASE_OK;
}

void comm_barrier_close(struct comm_barrier *barrier)
{
    comm_shared_close(&barrier->shared);
}

/* Fails with the names of the ranks that have not come in this turn. */
static base_status time_is_up(const struct comm_barrier *barrier, uint32_t turn)
{
    char names[256];
    uint64_t ranks = 0;

    for (int i = 0; i < barrier->count; i++)
        if (atomic_load(&barrier->words->members[i].turn) != turn + 1)
            ranks |= UINT64_C(1) << barrier->ranks[i];
    comm_group_name(barrier->group, ranks, names, sizeof names);
    return base_fail(BASE_ERR_TIMEOUT, "view %u: %s did not come to the barrier in time",
                     barrier->group->view.number, names);
}

/* An engine's thread serves its messages while it waits for a barrier: they wake it, too. Sockets
 * wake no futex, so the sleep is short where there are some. */
static base_status sleep_serving(struct comm_group *group, struct comm_futex *words,
                                 double deadline)
{
    base_status st = BASE_OK;
    bool moved = false;

    words[2] = (struct comm_futex){group->asleep, 1};
    atomic_store(group->asleep, 1);
    atomic_thread_fence(memory_order_seq_cst);
    TRY(comm_group_turn(group, &moved));
    if (group->messages > 0 && group->open_count > 1)
        deadline = fmin(deadline, base_now() + 0.5e-3);
    if (!moved && !comm_group_stirred(group))
        comm_futex_wait(words, 3, deadline);
out:
    atomic_store(group->asleep, 0);
    return st;
}

/* Sleeps until the turn is no longer `turn`. */
static base_status sleep_turn(struct comm_barrier *barrier, uint32_t turn, double deadline)
{
    struct comm_barrier_words *words = barrier->words;
    /* While the group opens, a newer view may overtake it without an alarm (comm_group_check). */
    double look_after = barrier->group->opening > 0 ? 0.5 : INFINITY;
    base_status st = BASE_OK;

    atomic_fetch_add(&words->sleepers, 1);
    while (atomic_load(&words->turn) == turn) {
        uint32_t alarm = atomic_load(barrier->alarm);
        struct comm_futex sleep[3] = {{&words->turn, turn}, {barrier->alarm, alarm}};

        TRY(comm_group_check(barrier->group));
        if (base_now() >= deadline)
            TRY(time_is_up(barrier, turn));
        if (barrier->group->engine != NULL)
            TRY(sleep_serving(barrier->group, sleep, deadline));
        else
            comm_futex_wait(sleep, 2, fmin(deadline, base_now() + look_after));
    }
out:
    atomic_fetch_sub(&words->sleepers, 1);
    return st;
}

base_status comm_barrier_meet(struct comm_barrier *barrier, double deadline)
{
    struct comm_barrier_words *words = barrier->words;
    uint32_t turn = atomic_load(&words->turn);
    struct comm_linger linger = comm_linger_of(barrier->alarm);
    base_status st = BASE_OK;
    bool moved;

    atomic_store_explicit(&words->members[barrier->me].turn, turn + 1, memory_order_relaxed);
    if (atomic_fetch_add(&words->arrived, 1) + 1 == (uint32_t)barrier->count) {
        atomic_store(&words->arrived, 0);
        atomic_store(&words->turn, turn + 1);
        if (atomic_load(&words->sleepers) != 0)
            comm_futex_wake(&words->turn);
        return BASE_OK;
    }
    while (comm_linger(&linger)) {
        if (atomic_load_explicit(&words->turn, memory_order_acquire) != turn)
            return BASE_OK;
        if (comm_group_has_messages(barrier->group))
            TRY(comm_group_turn(barrier->group, &moved));
    }
    TRY(sleep_turn(barrier, turn, deadline));
out:
    return st;
}

base_status comm_barrier_wait(struct comm_barrier *barrier, double deadline)
{
    base_status st = comm_group_enter(barrier->group);

    if (st != BASE_OK)
        return st;
    st = comm_barrier_meet(barrier, deadline);
    return st == BASE_OK ? st : comm_group_give_up(barrier->group, st, deadline);
}
