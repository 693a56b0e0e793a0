/* SPDX-License-Identifier: MIT
 *
 * No flush between batches (async=on; Narayanan et al., PipeDream-2BW, ICML 2021): a worker begins
 * a batch while gradients of the one before it are still to come, so with weights that lack that
 * one's update. The batch is computed with them to its end, forward and backward, though newer ones
 * are there by then. Every stage is stale by the same: a batch lacks one update, the first one
 * after a meeting none. So bits depend on no timing and on no number of workers.
 *
 * Two batches are open at a time, the older and the younger one. The older one is computed with the
 * stash, a copy of each stage's weights, the younger one with the state's. When the older one is
 * complete the state's weights become the stash, the update goes into the state's, and the younger
 * one is the older one.
 *
 * There are no replicas. After a loss all go back to the newest checkpoint.
 */
#ifndef TRAIN_STRATEGIES_RING_ASYNC_H
#define TRAIN_STRATEGIES_RING_ASYNC_H

#include "train/strategies/ring/ring.h"

/* Memory for the stages; nothing where the options do not ask for it. */
base_status ring_async_open(struct train_session *session, int64_t batch);
void ring_async_close(struct ring *ring); /* accepts zeros and half-opened */
/* What that takes: the stash, sums of the younger batch, both batches. */
double ring_async_bytes(const struct nn_graph *graph, double weights, int64_t batch);

/* Begins a batch; ring_async_steps completes it. */
void ring_async_begin(struct train_session *session, const struct data_batch *batch);
/* Steps up to the goal, all of which count at the end, and no batch is open. */
base_status ring_async_steps(struct train_session *session, int64_t goal);

/* How many batches lacked no update, and one; a new reference. */
json_t *ring_async_figures(const struct train_session *session);

#endif
