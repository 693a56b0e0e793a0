/* SPDX-License-Identifier: MIT
 *
 * A copy of a worker's whole state, to go back to: of the last round of local-sgd.
 */
#ifndef TRAIN_SNAPSHOT_H
#define TRAIN_SNAPSHOT_H

#include "train/state.h"

struct train_snapshot { /* starts as zeros: empty */
    float *weights, *slots[TRAIN_MAX_SLOTS], *statistics;
    int64_t *tracked;
    struct train_position position;
};

base_status train_snapshot_take(struct train_snapshot *snapshot, const struct train_state *state);
/* The state becomes what it was; an empty snapshot changes nothing. */
void train_snapshot_restore(const struct train_snapshot *snapshot, struct train_state *state);
void train_snapshot_fini(struct train_snapshot *snapshot); /* accepts zeros */

#endif
