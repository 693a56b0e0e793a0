/* SPDX-License-Identifier: MIT
 *
 * The state of a training: flat weights, optimiser slots, running statistics and the position in
 * the data (gradients live in one step only and belong to train/team.h); and its way into and out
 * of checkpoints (model/weights.h has the tensors' part). Randomness is counter-based, so the
 * position is all there is to remember of it.
 */
#ifndef TRAIN_STATE_H
#define TRAIN_STATE_H

#include "base/json.h"
#include "nn/graph.h"
#include "nn/optimiser.h"
#include "store/checkpoint.h"

struct train_position {
    int64_t step;    /* committed steps */
    int64_t epoch;   /* complete epochs */
    int64_t cursor;  /* samples of the current epoch that are in the weights */
    double loss_sum; /* of the current epoch so far … */
    int64_t correct, seen;
    double epoch_loss, epoch_accuracy; /* of the last complete epoch */
    double best_validation;            /* of patience and the best checkpoint; negative: none yet */
    int64_t best_step, stale_epochs;
};

struct train_state {
    const struct nn_graph *graph;
    const struct nn_optimiser *optimiser;
    size_t floats; /* of each weight-like buffer */
    float *weights, *slots[NN_MAX_SLOTS], *statistics;
    int64_t *tracked; /* PyTorch's num_batches_tracked, one for each statistics tensor */
    struct train_position position;
};

/* All zeros but the position. */
base_status train_state_init(struct train_state *state, const struct nn_graph *graph,
                             const struct nn_optimiser *optimiser);
void train_state_fini(struct train_state *state); /* accepts zeros */

/* Writes DIR/step-N. `about` (borrowed) is completed with "position" and "optimiser". */
base_status train_state_save(const struct train_state *state, const char *dir, json_t *about,
                             unsigned keep);

/* Everything from an opened checkpoint; what is missing or has another shape is an error. The
 * slots are left at zero, with a warning, when the checkpoint's optimiser is another one. */
base_status train_state_load(struct train_state *state, const struct store_checkpoint *checkpoint);

/* Weights and statistics only, from a safetensors file: model_weights_read. */
base_status train_state_load_weights(struct train_state *state, const char *path, bool partial);

/* The position as the object of a manifest, and back. */
json_t *train_position_to_json(const struct train_position *position);
base_status train_position_from_json(const json_t *object, struct train_position *position_p);

/* Finite everywhere? A state that is not is never saved. */
bool train_state_finite(const struct train_state *state);

#endif
