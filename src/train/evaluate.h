/* SPDX-License-Identifier: MIT
 *
 * A network over a part of a data set, without learning.
 */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include "data/loader.h"
#include "nn/net.h"
#include "train/clock.h"
#include "train/pace.h"
#include "train/tally.h"

/* Computes a batch, which may have no samples, and adds it to the tally. */
struct train_pass {
    base_status (*batch)(void *context, const struct data_batch *batch, struct train_tally *tally);
    void *context;
};

/* Adds every sample of this share of the part to `tally`, in batches of `batch`. Where it is the
 * only share, it stops between batches when the person asked to stop (BASE_ERR_INTERRUPTED). The
 * clock is in TRAIN_DATA while it waits for data. `in_step`: all workers make the same passes, so
 * one whose samples are used up goes on without any for as long as others may have some. */
base_status train_evaluate_by(struct train_pass pass, const struct data_set *set,
                              enum data_part part, struct data_share share, int batch, bool in_step,
                              struct train_tally *tally, struct train_clock *clock,
                              struct train_pace *pace /* or NULL */);

/* The same with a network on this worker, of at least `batch` samples. */
base_status train_evaluate(struct nn_net *net, const struct data_set *set, enum data_part part,
                           struct data_share share, int batch, bool in_step,
                           struct train_tally *tally, struct train_clock *clock,
                           struct train_pace *pace /* or NULL */);

#endif
