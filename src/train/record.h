/* SPDX-License-Identifier: MIT
 *
 * --record LAYER: statistics of a layer's activations in the events while training (mean,
 * deviation, share of zeros, histogram), taken at the steps that are logged.
 */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "base/events.h"
#include "base/option.h"
#include "nn/net.h"
#include "train/tensorboard.h"

struct train_record; /* hooks of one network */

/* `events` points to the event log of the moment, or to NULL while this worker has none; `board`
 * likewise. */
base_status train_record_new(struct nn_net *net, const struct nn_graph *graph,
                             const struct base_texts *layers, struct base_events *const *events,
                             struct train_tensorboard *const *board,
                             struct train_record **record_p);
void train_record_free(struct train_record *record); /* accepts NULL */

/* Record the forwards from now on, as those of `step`? Accepts NULL. */
void train_record_arm(struct train_record *record, bool armed, int64_t step);

#endif
