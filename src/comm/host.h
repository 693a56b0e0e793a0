/* SPDX-License-Identifier: MIT
 *
 * The words that the workers and the agent of one host share: a memfd that the agent makes and each
 * of its workers maps at its start. It lives as long as the agent and is the same for all views.
 *
 * A worker's death is seen before its memory is torn down: every worker holds a robust futex word
 * (its "alive" word), registered on a thread that lives as long as the process. The kernel marks it
 * when the worker dies, however it dies. The agent alone watches those words (comm_host_watch); it
 * writes down the lost worker, increments `alarm` and wakes all workers. A worker that waits in
 * shared memory waits on {what it waits for, alarm} (futex_waitv), so any loss, of this host or of
 * another, ends the wait at once.
 */
#ifndef COMM_HOST_H
#define COMM_HOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { COMM_HOST_SLOTS = 64 };

struct comm_host;

/* The agent's side. */
base_status comm_host_create(struct comm_host **host_p);
int comm_host_fd(const struct comm_host *host); /* to hand to a worker at its start */

/* Waits until an alive word dies or `deadline` (base_now) passes. *slot_p: its slot, or -1. Each
 * death is reported once. One thread calls it; comm_host_poke makes it return early with -1. */
base_status comm_host_watch(struct comm_host *host, double deadline, int *slot_p);
void comm_host_poke(struct comm_host *host);

/* Tells every waiting worker of this host that worker `id` is no longer of view `view`: the waits
 * of groups of that view and of older ones end in BASE_ERR_PEER_LOST. */
void comm_host_alarm(struct comm_host *host, uint32_t view, uint32_t id);

/* True if the slot's word is dead now. What comm_host_watch reported may be out of date: the slot
 * may have been cleared since. */
bool comm_host_died(struct comm_host *host, int slot);

/* The agent may give a slot away again once its worker was reaped. */
void comm_host_clear(struct comm_host *host, int slot);

/* The worker's side: maps the words and takes the slot. The worker counts as dead when the thread
 * that called this ends without comm_host_close: it must be the one that lives longest. */
base_status comm_host_attach(int fd, int slot, struct comm_host **host_p);

/* Either side. A worker closes on the thread that attached; its word becomes free. */
void comm_host_close(struct comm_host *host); /* accepts NULL */
/* Wakes every waiting worker of this host to look again, without naming a loss. */
void comm_host_rouse(struct comm_host *host);
_Atomic uint32_t *comm_host_alarm_word(struct comm_host *host);
/* The last worker lost from view `view` or a later one; 0: none. */
uint32_t comm_host_lost(struct comm_host *host, uint32_t view);

#endif
