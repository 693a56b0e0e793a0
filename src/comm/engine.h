/* SPDX-License-Identifier: MIT
 *
 * An engine: a communication thread that owns a group between begin and end. Any thread hands it
 * tasks and goes on computing; messages move meanwhile without that thread's help. There are two
 * kinds of tasks:
 *
 *   a message   sent or received as in comm/group.h. Messages of one channel with one peer keep the
 *               order in which they were handed over.
 *   an order    a callback that may use the group as if it were the caller's: a collective. Orders
 *               run one after the other, first come, first served; so every rank must hand them
 *               over in the same order. Messages move on while an order waits for other ranks.
 *
 * A task ends with BASE_OK or with what ended the group. After the group's end every task, and all
 * that come later, end at once with the same code and sentence: no task outlives its view.
 *
 * While a group has an engine, other threads do not use comm_send, comm_wait and their like; coll's
 * operations notice the engine and become orders.
 */
#ifndef COMM_ENGINE_H
#define COMM_ENGINE_H

#include <stdatomic.h>

#include "comm/group.h"

struct comm_engine;

typedef base_status comm_order(void *context);

/* The caller owns it and keeps it and its buffer in place until the task has ended. */
struct comm_task {
    struct comm_request request; /* a message; once it has ended: what came */
    comm_order *run;             /* the order's callback; NULL: the task is a message */
    void *context;
    base_status status;
    _Atomic bool ended;
    struct comm_task *next; /* links the engine's lists */
};

/* Fails with the group's code if the group is void. */
base_status comm_engine_begin(struct comm_group *group);
/* No other thread may be in a call below, nor begin one. Runs the orders that were handed over.
 * Messages that are under way then end in BASE_ERR_INTERRUPTED, and make the group void; without
 * any the group is the caller's again. Returns what ended the group before, if anything did.
 * Accepts a group without an engine. */
base_status comm_engine_end(struct comm_group *group);
/* NULL if the group has no engine. */
struct comm_engine *comm_group_engine(const struct comm_group *group);
/* True on the engine's own thread, that is, inside an order. */
bool comm_engine_is_here(const struct comm_engine *engine);

/* Hand over a task; any thread may call these. */
void comm_engine_send(struct comm_engine *engine, int to, enum comm_channel channel, uint32_t tag,
                      const void *bytes, size_t count, struct comm_task *task);
void comm_engine_receive(struct comm_engine *engine, int from, enum comm_channel channel,
                         uint32_t tag, void *bytes, size_t count, struct comm_task *task);
void comm_engine_receive_any(struct comm_engine *engine, int from, enum comm_channel channel,
                             void *bytes, size_t room, struct comm_task *task);
void comm_engine_order(struct comm_engine *engine, comm_order *order, void *context,
                       struct comm_task *task);

/* Waits until the task has ended and returns its status. BASE_ERR_TIMEOUT at the deadline: the task
 * goes on and may be waited for again. An order must not wait for a task of its own engine:
 * BASE_ERR_INTERNAL. */
base_status comm_engine_wait(struct comm_engine *engine, struct comm_task *task, double deadline);
/* Waits until one of the tasks has ended (NULL entries are skipped), puts the first one's index
 * into *index_p and returns its status. When `until` has passed, or a view newer than `known` is
 * heard of (comm_group_newest), -1 and BASE_OK; -1 and what ended the group, if that came first and
 * no task was given. */
base_status comm_engine_poll(struct comm_engine *engine, struct comm_task *const *tasks, int count,
                             double until, uint32_t known, int *index_p);

/* Ends a task that was handed to no engine and is all zeros: a bell, which wakes a thread that has
 * it among the tasks of its comm_engine_poll. */
void comm_engine_ring(struct comm_engine *engine, struct comm_task *bell);

#endif
