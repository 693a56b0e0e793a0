/* SPDX-License-Identifier: MIT
 *
 * How far a leg of parameter servers has come: the samples that are in the weights, and the steps
 * that they complete. Every server counts for itself, entry by entry, to the same result. Pure
 * arithmetic, one thread at a time.
 */
#ifndef TRAIN_STRATEGIES_PS_PROGRESS_H
#define TRAIN_STRATEGIES_PS_PROGRESS_H

#include "train/state.h"
#include "train/strategies/ps/call.h"
#include "train/task.h"

/* Where the samples stand after the entries that were applied. */
struct train_progress {
    struct train_position began; /* of the leg */
    int64_t batch;
    struct ps_ledger ledger;
    struct train_outcome outcome;     /* of the leg */
    int64_t pushes[COMM_MAX_WORKERS]; /* of each worker: the clock after its newest one */
};

/* A step's samples are all in the weights. */
struct train_finished {
    int64_t step, samples;
    struct train_outcome outcome; /* of the entries since the step before it */
    double lr;
};

/* Steps that the journal has not been told of; the last one may be under way. */
struct ps_told {
    struct train_finished *at;
    int count;
};

/* Could another process have come this far, in an epoch of so many samples? */
bool ps_progress_can_be(const struct train_progress *progress, int64_t batch, int64_t samples);

int64_t ps_progress_steps(const struct train_progress *progress, int64_t samples);
void ps_progress_position(const struct train_progress *progress, struct train_position *position_p);
/* Samples above that position that are done; as many as returned. */
int ps_progress_spans(const struct train_progress *progress,
                      struct train_span spans[TRAIN_MAX_SPANS + 1]);

/* An entry is in the weights. `lr`: of the step under way. */
void ps_progress_count(struct train_progress *progress, const struct train_log_entry *entry,
                       double lr, struct ps_told *told);
/* Samples that count for the first step already. */
void ps_progress_begin(const struct train_progress *progress, const struct train_outcome *outcome,
                       struct ps_told *told);
/* Moves finished steps out (base_free); how many. */
int ps_progress_take(const struct train_progress *progress, struct ps_told *told,
                     struct train_finished **steps_p);

#endif
