/* SPDX-License-Identifier: MIT
 *
 * The leg of the synchronous family (single, gather-scatter, allreduce, ddp): in every step each
 * worker computes its share of the batch, the strategy's `sum` combines the gradients, and all
 * workers make the same update. A failed step leaves the state as it was.
 */
#ifndef TRAIN_PARALLEL_H
#define TRAIN_PARALLEL_H

#include "train/strategy.h"

base_status train_parallel_leg(struct train_session *session, int64_t goal);

#endif
