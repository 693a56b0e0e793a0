/* SPDX-License-Identifier: MIT
 *
 * --record LAYER: statistics of a layer's activations in the events while training (mean,
 * deviation, share of zeros, histogram), taken at the steps that are logged. --record LAYER:npy:
 * the activations themselves, of samples that are passed through the network for it.
 */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "base/events.h"
#include "base/option.h"
#include "nn/net.h"
#include "train/tensorboard.h"

struct train_record; /* hooks of one network */

/* Are they of this model? An error says which is not. */
base_status train_record_check(const struct base_texts *layers, const struct nn_graph *graph);
/* Does one of them end in ":npy"? */
bool train_record_wants_whole(const struct base_texts *layers);

/* `events` points to the event log of the moment, or to NULL while this worker has none; `board`
 * likewise. */
base_status train_record_new(struct nn_net *net, const struct nn_graph *graph,
                             const struct base_texts *layers, struct base_events *const *events,
                             struct train_tensorboard *const *board,
                             struct train_record **record_p);
void train_record_free(struct train_record *record); /* accepts NULL */

/* Record the forwards from now on, as those of `step`? Accepts NULL. */
void train_record_arm(struct train_record *record, bool armed, int64_t step);

/* The forwards from now on are of `samples` samples in all, whose activations in the layers with
 * ":npy" go into FOLDER/LAYER/epoch-NNNN.npy: (samples,C,H,W), or (samples,C) of a flat layer. */
base_status train_record_begin(struct train_record *record, const char *folder, int64_t epoch,
                               size_t samples);
/* Call it also after a begin that failed. Without `keep` nothing is left. */
base_status train_record_end(struct train_record *record, bool keep);

#endif
