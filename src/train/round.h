/* SPDX-License-Identifier: MIT
 *
 * Strategies whose workers go apart for some steps and meet in rounds: between rounds every worker
 * updates its own weights by its own gradients. What is committed is the last round; a lost worker
 * costs the steps behind it, which are put back here and done again.
 */
#ifndef TRAIN_ROUND_H
#define TRAIN_ROUND_H

#include "train/state.h"
#include "train/strategy.h"

struct train_round {                                   /* starts as zeros */
    float *weights, *slots[NN_MAX_SLOTS], *statistics; /* of the last round */
    int64_t *tracked;
    struct train_position position;
};

/* This state is a round's: remembers it. */
base_status train_round_keep(struct train_round *round, const struct train_state *state);
/* Back to the last round, if there was one. */
void train_round_undo(const struct train_round *round, struct train_state *state);
void train_round_fini(struct train_round *round);

#endif
