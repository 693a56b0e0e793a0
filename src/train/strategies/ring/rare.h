/* SPDX-License-Identifier: MIT
 *
 * Replicas that are renewed after every k-th step, and when workers meet (replicate=every:K): each
 * worker then sends its stages whole to those that have replicas of them, in place of gradients at
 * each step, and keeps a copy of them. When one is lost all go back to the step at which all
 * replicas were renewed last: at most k steps. New replicas come into memory of their own, so that
 * the former ones are there until all workers know that all have the new ones.
 */
#ifndef TRAIN_STRATEGIES_RING_RARE_H
#define TRAIN_STRATEGIES_RING_RARE_H

#include "train/strategies/ring/ring.h"

/* A leg begins: what all have now can be gone back to. */
void ring_rare_begin(struct train_session *session);
/* All workers call it, at the same step. */
base_status ring_rare_renew(struct train_session *session);

/* After a loss: the renewal that was under way is complete. Otherwise all steps since the last one
 * never were (ring_spare_restore). */
void ring_rare_accept(struct train_session *session);
/* Then, where the job goes on: counts and tells the steps up to `from` that never were, if there
 * are any. */
void ring_rare_lose(struct train_session *session, int64_t from);

#endif
