/* SPDX-License-Identifier: MIT
 *
 * Which ranges of the state a worker of the ring has: those of its stages and, with replicas, of
 * the stages of one or more workers before it. Running statistics it has of all layers, but up to
 * date those of these stages alone.
 */
#ifndef TRAIN_STRATEGIES_RING_HOLDS_H
#define TRAIN_STRATEGIES_RING_HOLDS_H

#include "train/strategies/ring/stages.h"

void ring_place(const struct train_placing *placing, int rank, struct train_holds *wanted);

/* Adds what this worker has, at a version, to its claims: all of its weights and slots; running
 * statistics of the stages that it holds, or all where the workers shared them at that step. The
 * next view may have begun already, and with it another rank. */
void ring_claim(const struct ring_stages *stages, struct train_session *session,
                struct train_version version);

/* They become everywhere as on the worker whose stage they are of; all workers call it. */
base_status ring_share_statistics(const struct ring_stages *stages, struct train_session *session);

#endif
