/* SPDX-License-Identifier: MIT
 *
 * The state of a training: flat weights, optimiser slots, running statistics and the position in
 * the data (gradients live in one step only and belong to train/team.h); and its way into and out
 * of checkpoints (model/weights.h has the tensors' part). Randomness is counter-based, so the
 * position is all there is to remember of it.
 *
 * A worker has all of it, or ranges of the weights and slots, as the strategy's `place` says. A
 * group that it has whole is in flat buffers (`weights`, `slots`); of a group that it has in parts
 * these are NULL and `parts` has the memory. Running statistics are small: every worker has them
 * whole.
 */
#ifndef TRAIN_STATE_H
#define TRAIN_STATE_H

#include "base/json.h"
#include "nn/graph.h"
#include "nn/optimiser.h"
#include "store/checkpoint.h"
#include "train/holds.h"

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

/* Memory for a range of a group: one buffer of the weights, one for each slot of the optimiser. */
struct train_part {
    enum train_group group;
    size_t from, count;
    float *buffers[NN_MAX_SLOTS];
};

struct train_state {
    const struct nn_graph *graph;
    const struct nn_optimiser *optimiser;
    size_t floats; /* of each weight-like buffer, wherever it is */
    float *weights, *slots[NN_MAX_SLOTS], *statistics;
    struct train_part *parts; /* of the groups that are held in parts */
    size_t part_count;
    int64_t *tracked; /* PyTorch's num_batches_tracked, one for each statistics tensor */
    struct train_position position;
    /* After a step that a lost worker ended half-way: what this worker has, at which versions.
     * Empty: all of its memory, at the position. The strategy that ran the step fills it. */
    struct train_holds claims;
};

/* Everything, all zeros but the position. */
base_status train_state_init(struct train_state *state, const struct nn_graph *graph,
                             const struct nn_optimiser *optimiser);
/* The same without memory for weights and slots. */
base_status train_state_describe(struct train_state *state, const struct nn_graph *graph,
                                 const struct nn_optimiser *optimiser);
void train_state_fini(struct train_state *state); /* accepts zeros */

/* Floats of a buffer of each group. */
void train_state_sizes(const struct train_state *state, uint64_t size[TRAIN_GROUPS]);
int train_state_buffers(const struct train_state *state, enum train_group group);
struct train_version train_state_version(const struct train_state *state); /* the position's */

/* New memory, zeros, for the weights and slots of `wanted`, in place of what `state` points to,
 * which it forgets: the caller keeps a copy of the struct and ends with train_state_drop of one of
 * the two. On failure `state` is as it was. */
base_status train_state_make_room(struct train_state *state, const struct train_holds *wanted);
/* Frees weights and slots; the rest stays. */
void train_state_drop(struct train_state *state);

/* Floats [from, from + count) of the model in a buffer of a group; NULL where they are not held as
 * one piece. */
float *train_state_at(const struct train_state *state, enum train_group group, int buffer,
                      size_t from, size_t count);
/* Does it have memory for everything? */
bool train_state_is_whole(const struct train_state *state);
/* What it can give to others: its claims, or all of its memory at the position. */
void train_state_holds(const struct train_state *state, struct train_holds *holds_p);

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
