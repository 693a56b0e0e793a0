/* SPDX-License-Identifier: MIT
 *
 * What a file in nn/optimisers/ provides: `const struct nn_optimiser nn_optimiser_NAME`. An update
 * is one pass over any range of the flat buffers, element by element, so it can be cut anywhere;
 * it reads one copy and writes another (they may be the same). Compiled without FMA contraction.
 */
#ifndef NN_OPTIMISER_H
#define NN_OPTIMISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { NN_MAX_SLOTS = 2 };

struct nn_hyper {
    double lr;       /* of this step, schedule applied */
    double momentum; /* sgd */
    bool nesterov;
    double weight_decay;
    double beta1, beta2, epsilon; /* adam, adamw */
    double gradient_scale;        /* of clipping; 1: none */
    uint64_t step;                /* from 1 */
    /* Weights whose gradient is 0 stay as they are, and so do their slots: of embeddings, of which
     * a step touches a few rows. */
    bool lazy;
};

struct nn_update {
    size_t count;
    const float *gradient;
    const float *weight_in, *slot_in[NN_MAX_SLOTS];
    float *weight_out, *slot_out[NN_MAX_SLOTS];
};

struct nn_optimiser {
    const char *name, *help;
    int slots;
    const char *slot_names[NN_MAX_SLOTS]; /* PyTorch's: "momentum_buffer", "exp_avg", … */
    /* To be called through nn_optimiser_update, which knows what it need not do. */
    void (*update)(const struct nn_hyper *hyper, const struct nn_update *update);
};

extern const struct nn_optimiser *const nn_optimiser_registry[];
extern const size_t nn_optimiser_count;

base_status nn_optimiser_find(const char *name, const struct nn_optimiser **optimiser_p);

/* The optimiser's update, to the bit. Where a lazy one writes to what it reads, weights and slots
 * of blocks without a gradient are not even looked at: of embeddings, most. */
void nn_optimiser_update(const struct nn_optimiser *optimiser, const struct nn_hyper *hyper,
                         const struct nn_update *update);

enum { NN_UPDATE_BLOCK = 256 }; /* floats */
/* Has none of these a gradient? */
bool nn_update_is_idle(const float *gradient, size_t count);
/* Floats [from, from + count) of an update. */
struct nn_update nn_update_part(const struct nn_optimiser *optimiser,
                                const struct nn_update *update, size_t from, size_t count);

#endif
