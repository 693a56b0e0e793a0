/* SPDX-License-Identifier: MIT
 *
 * A barrier of some ranks of one host: words in shared memory of the view. The ranks that take part
 * are given when it is opened; other ranks of the host are not needed. A rank that waits lingers,
 * then sleeps on the turn and on the host's alarm, so the loss of any worker of the view ends its
 * wait at once, whether that worker takes part or not: a group is void after any loss.
 *
 * A rank waits at one barrier at a time, on the thread that uses the group.
 */
#ifndef COMM_BARRIER_H
#define COMM_BARRIER_H

#include <stdatomic.h>
#include <stdint.h>

#include "comm/group.h"

struct comm_barrier_words { /* all zero at first */
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t turn; /* a futex */
    _Atomic uint32_t sleepers;          /* on `turn` */
    struct {
        /* The turn in which it arrived last, plus one: names the ranks that have not come. */
        _Alignas(64) _Atomic uint32_t turn;
    } members[COMM_MAX_WORKERS];
};

struct comm_barrier {
    struct comm_group *group;
    struct comm_barrier_words *words;
    _Atomic uint32_t *alarm;
    struct comm_shared shared; /* the words, unless another module owns them */
    int count, me; /* the number of ranks that take part, and this one's index among them */
    int ranks[COMM_MAX_WORKERS];
};

/* `ranks` are of this host, contain this rank and have the same order on all of them. The caller
 * owns the words. */
void comm_barrier_init(struct comm_barrier *barrier, struct comm_group *group,
                       struct comm_barrier_words *words, const int *ranks, int count);
/* The same with words that the barrier itself opens under `key`, in memory that the ranks share.
 * The same key may be opened again. */
base_status comm_barrier_open(struct comm_barrier *barrier, struct comm_group *group,
                              const char *key, const int *ranks, int count);
void comm_barrier_close(struct comm_barrier *barrier); /* accepts what was never opened */

/* Waits until all ranks have come. Fails as a wait of the group does, and the group is then void.
 */
base_status comm_barrier_wait(struct comm_barrier *barrier, double deadline);
/* The same for transports: the group itself is not made void, since a transport's failure is
 * handled by the group that called it. */
base_status comm_barrier_meet(struct comm_barrier *barrier, double deadline);

#endif
