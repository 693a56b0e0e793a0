/* SPDX-License-Identifier: MIT
 *
 * The training of a model with a closed form (nn/closed.h): one pass over the samples instead of
 * steps. It takes the place of a strategy's leg.
 */
#ifndef TRAIN_CLOSED_H
#define TRAIN_CLOSED_H

#include "nn/closed.h"
#include "train/session.h"

/* Every worker sums over its share of the training part of `set`, the sums are added in the order
 * of ranks, and all workers compute the same weights. On return the position is after the run's
 * one step, at the end of its one epoch. `batch`: samples that are added at once. */
base_status train_closed_leg(struct train_session *session, const struct nn_closed *closed,
                             const char *arguments, const struct data_set *set, uint32_t batch);

#endif
