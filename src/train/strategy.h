/* SPDX-License-Identifier: MIT
 *
 * What a file in train/strategies/ provides: `const struct train_strategy train_strategy_NAME`.
 * A strategy owns "combine and update": it is told each range of the flat gradient buffer as
 * backward completes it, and turns the gradients of all workers into the next weights. It never
 * knows what a convolution is.
 */
#ifndef TRAIN_STRATEGY_H
#define TRAIN_STRATEGY_H

#include "base/status.h"
#include "nn/optimiser.h"

/* One step's update: flat buffers of the whole model. */
struct train_step {
    size_t floats;
    float *weights, *gradients, *slots[NN_MAX_SLOTS];
    const struct nn_optimiser *optimiser;
    struct nn_hyper hyper;
    double clip;          /* largest gradient norm, 0: none */
    double gradient_norm; /* out: before clipping; 0 when it was not needed */
};

struct train_strategy {
    const char *name, *help;
    const char *commit_unit; /* the most that a lost worker can cost: "step" */
    /* A range of gradients is complete; backward goes on. NULL: not interested. */
    void (*ready)(void *step, size_t offset, size_t count);
    /* Combines what is left and updates all weights. */
    base_status (*finish)(struct train_step *step);
};

extern const struct train_strategy *const train_strategy_registry[];
extern const size_t train_strategy_count;

base_status train_strategy_find(const char *name, const struct train_strategy **strategy_p);

#endif
