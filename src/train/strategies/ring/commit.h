/* SPDX-License-Identifier: MIT
 *
 * When a step counts. A worker whose gradients are complete sends them to the workers that have
 * replicas of its stages, and takes those of its own replicas. Then it tells all others its word. A
 * worker that has the words of all knows that each of them can make the step, for its stages and
 * for its replicas, and from then on the step counts. One that loses another before it has them
 * cannot know whether a third one has: in the next view all ask each other, and the newest step
 * that one of them knows to count is the one from which they go on.
 *
 * Steps that do not overlap are reported before any weight is written. Steps that overlap are
 * reported after this worker has made them, while it computes the next one; that one is made when
 * the step before it is known to count. So a worker has the newest step that counts: in its
 * weights, or in the spare copy; and in its replicas, or as their gradients.
 */
#ifndef TRAIN_STRATEGIES_RING_COMMIT_H
#define TRAIN_STRATEGIES_RING_COMMIT_H

#include "train/strategies/ring/ring.h"

/* Reports a step and waits for the words of all: verdict and step->outcome are those of all. */
base_status ring_agree(struct train_session *session, struct train_step *step);
/* The step comes into the weights and counts. */
void ring_commit(struct train_session *session, const struct train_step *step);

/* The step is in this worker's weights, and is reported on the engine's thread. */
void ring_report(struct train_session *session, const struct train_step *step);
/* Waits for what was reported, if anything was: the step then counts, or the loss has diverged, or
 * a worker was lost, and the step is doubtful. */
base_status ring_hear(struct train_session *session);
/* The same, if it does not take time; otherwise a part of what replicas lack. False: there was
 * nothing to do. A ring_chore. */
bool ring_hear_some(void *session);

/* As in struct train_strategy. */
base_status ring_reconcile(struct train_session *session);
void ring_settle(struct train_session *session, struct train_version version);

#endif
