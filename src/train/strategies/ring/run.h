/* SPDX-License-Identifier: MIT
 *
 * Batches on their way through the stages of one worker of the ring, by the ready rule (rule.h):
 * one at a time, or two, of which the older one goes first.
 */
#ifndef TRAIN_STRATEGIES_RING_RUN_H
#define TRAIN_STRATEGIES_RING_RUN_H

#include "train/strategies/ring/stages.h"

/* A batch on its way through the stages of this worker. */
struct ring_run {
    struct ring_stages *stages;
    struct train_session *session;
    const struct data_batch *batch;
    struct train_tally *tally;    /* of a batch that is scored; NULL: it is learnt from */
    struct train_outcome outcome; /* then */
    const struct ring_run *older; /* that is open, too; NULL: none */
    int64_t before;               /* micro-batches of all runs before this one */
    size_t sample;                /* floats of one, as it enters the model */
    int forwards, backwards;
    struct ring_rule rule;
};

/* The batch enters the stages … */
void ring_run_begin(struct ring_run *run);
/* … and has passed through them. `next`: a run that has begun and is worked on where this one has
 * to wait; NULL: none. */
base_status ring_run_complete(struct ring_run *run, struct ring_run *next);

/* Forward and backward of all micro-batches of a batch: sums of their gradients are in `sum` of
 * each stage; the outcome is that of the worker with the last layer, zeros of the
 * others. */
base_status ring_run_learn(struct ring_stages *stages, struct train_session *session,
                           const struct data_batch *batch, struct train_outcome *outcome);
/* Forward only, without learning; the worker with the last layer adds to the tally. */
base_status ring_run_score(struct ring_stages *stages, struct train_session *session,
                           const struct data_batch *batch, struct train_tally *tally);

#endif
