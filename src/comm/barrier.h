/* SPDX-License-Identifier: MIT
 *
 * A barrier of some ranks of one host: words in shared memory of the view. The ranks that take part
 * are given when it is opened; other ranks of the host are not needed. A rank that waits lingers,
 * then sleeps on the turn and on the host's alarm, so a loss ends its wait at once: of any worker
 * of the view, whether it takes part or not, because a group is void after any loss.
 *
 * Of the barriers of a rank one at a time is waited for, by the thread that uses the group.
 */
#ifndef COMM_BARRIER_H
#define COMM_BARRIER_H

#include <stdatomic.h>
#include <stdint.h>

#include "comm/group.h"

struct comm_barrier_words { /* zeros at first */
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t turn; /* a futex */
    _Atomic uint32_t sleepers;          /* on `turn` */
    struct {
        _Alignas(64) _Atomic uint32_t turn; /* that it came to last, and one: for messages */
    } members[COMM_MAX_WORKERS];
};

struct comm_barrier {
    struct comm_group *group;
    struct comm_barrier_words *words;
    _Atomic uint32_t *alarm;
    struct comm_shared shared; /* the words, unless another module owns them */
    int count, me;             /* ranks that take part, and which of them is this one */
    int ranks[COMM_MAX_WORKERS];
};

/* `ranks`: of this host, this one among them, in an order that is the same for all. The words
 * belong to the caller. */
void comm_barrier_init(struct comm_barrier *barrier, struct comm_group *group,
                       struct comm_barrier_words *words, const int *ranks, int count);
/* The same with words of its own, which the ranks share under `key`. They may be opened again. */
base_status comm_barrier_open(struct comm_barrier *barrier, struct comm_group *group,
                              const char *key, const int *ranks, int count);
void comm_barrier_close(struct comm_barrier *barrier); /* accepts what was never opened */

/* Until all have come. Fails as a wait of the group does, and the group is then void. */
base_status comm_barrier_wait(struct comm_barrier *barrier, double deadline);
/* The same for transports, whose failures the group turns into its end. */
base_status comm_barrier_meet(struct comm_barrier *barrier, double deadline);

#endif
