/* SPDX-License-Identifier: MIT
 *
 * The update of a step, the same whatever combined the gradients: clip by the norm of the whole
 * gradient, then the optimiser, range by range.
 */
#ifndef TRAIN_UPDATE_H
#define TRAIN_UPDATE_H

#include "nn/optimiser.h"
#include "train/strategy.h"

struct train_update {
    float *weights, *slots[NN_MAX_SLOTS]; /* flat buffers of the whole model */
    const struct nn_optimiser *optimiser;
    struct nn_hyper hyper;
    double clip;          /* largest gradient norm, 0: none */
    double gradient_norm; /* out: before clipping; 0 when it was not needed */
};

/* The scale that clipping by the norm of all ranges asks for, into hyper; 1 without clipping. */
void train_update_clip(struct train_update *update, const struct train_range *ranges, int count);
/* The same where the sum of all squares is known. */
void train_update_clip_by(struct train_update *update, double squares);
/* Clips, then updates. */
void train_update_ranges(struct train_update *update, const struct train_range *ranges, int count);

#endif
