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
#include "model/weights.h"
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
    int64_t plan_start; /* steps before the plan's first: it moves when data is added */
};

/* Slots are the optimiser's, then *extras*: buffers of the weights' layout that the strategy keeps.
 */
enum { TRAIN_MAX_EXTRAS = 2, TRAIN_MAX_SLOTS = NN_MAX_SLOTS + TRAIN_MAX_EXTRAS };

/* Memory for a range of a group: of the weights one buffer, of the slots one for each. */
struct train_part {
    size_t from, count;
    float *buffers[TRAIN_MAX_SLOTS];
};

struct train_parts {
    struct train_part *at;
    size_t count;
};

/* Where a tensor is in the weights. */
struct train_extent {
    size_t from, count;
};

struct train_state {
    const struct nn_graph *graph; /* of a network; NULL: the tensors are all there is to know */
    const struct nn_optimiser *optimiser;
    const char *const *extras; /* names of them in checkpoints, NULL-ended; NULL: there are none */
    size_t floats;             /* of each weight-like buffer, wherever it is */
    size_t compared; /* the first of them: what comes after follows from these (train/compare.c) */
    size_t stat_floats, stats; /* floats of the running statistics, and tensors of them */
    uint64_t parameters;
    struct train_extent *tensors; /* of the weights, in the order of the file */
    size_t tensor_count;
    float *weights, *slots[TRAIN_MAX_SLOTS], *statistics;
    struct train_parts parts[TRAIN_GROUPS]; /* of a group that is held in parts */
    int64_t *tracked; /* PyTorch's num_batches_tracked, one for each statistics tensor */
    struct train_position position;
    /* Samples after the cursor that are in the weights nevertheless: a strategy whose workers take
     * blocks was left half-way, and goes on with the others. Such a state is never saved. */
    int64_t ahead;
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
/* The same for weights that are no network's: `count` tensors in `floats`, with neither slots nor
 * statistics. */
base_status train_state_describe_tensors(struct train_state *state,
                                         const struct train_extent *tensors, size_t count,
                                         size_t floats);
void train_state_fini(struct train_state *state); /* accepts zeros */

/* Floats of a buffer of each group. */
void train_state_sizes(const struct train_state *state, uint64_t size[TRAIN_GROUPS]);
int train_state_buffers(const struct train_state *state, enum train_group group);
struct train_version train_state_version(const struct train_state *state); /* the position's */

/* New memory, zeros, for what `wanted` has of the weights or slots. What `state` points to is
 * forgotten, not freed: it is in a copy of the struct that the caller has made, which is then the
 * one to drop. On failure `state` is as it was. */
base_status train_state_make_room(struct train_state *state, enum train_group group,
                                  const struct train_holds *wanted);
void train_state_drop(struct train_state *state, enum train_group group); /* frees it */
/* Is its memory of that group what `wanted` asks for? */
bool train_state_fits(const struct train_state *state, enum train_group group,
                      const struct train_holds *wanted);

/* Floats [from, from + count) of the model in a buffer of a group; NULL where they are not held as
 * one piece. */
float *train_state_at(const struct train_state *state, enum train_group group, int buffer,
                      size_t from, size_t count);
/* Copies floats [from, from + count) into a buffer, or out of it, as far as they are held. */
void train_state_put(const struct train_state *state, enum train_group group, int buffer,
                     size_t from, size_t count, const float *floats);
void train_state_get(const struct train_state *state, enum train_group group, int buffer,
                     size_t from, size_t count, float *floats);
/* Everything but the position becomes zeros. */
void train_state_clear(struct train_state *state);
/* The same, then weights and statistics from the seed: any worker makes those that it holds. */
base_status train_state_start(struct train_state *state, uint64_t seed);
/* An extra by its name; NULL: there is none. */
float **train_state_extra(struct train_state *state, const char *name);
/* Does it have memory for everything? */
bool train_state_is_whole(const struct train_state *state);
/* What it can give to others: its claims, or all of its memory at the position. */
void train_state_holds(const struct train_state *state, struct train_holds *holds_p);

/* The files of a network. `carrier` brings weights (group TRAIN_WEIGHTS) and slots that are not in
 * this worker's memory; NULL: all are. */
base_status train_state_write(const struct train_state *state, const struct model_carrier *carrier,
                              struct store_save *save);
/* Writes DIR/step-N with these files. `about` (borrowed) is completed with "position" and
 * "optimiser". */
base_status train_state_save(const struct train_state *state, const struct model_carrier *carrier,
                             const char *dir, json_t *about, unsigned keep);
/* Completes a checkpoint whose files are written, as train_state_save does; frees `save` in any
 * case. */
base_status train_state_commit(const struct train_state *state, struct store_save *save,
                               json_t *about, unsigned keep);

/* The position of an opened checkpoint. */
base_status train_state_load_position(struct train_state *state,
                                      const struct store_checkpoint *checkpoint);
/* All tensors of it, which `carrier` takes to where they are held; what is missing or has another
 * shape is an error. The slots are left alone, with a warning, when the checkpoint's optimiser is
 * another one; extras that one side does not know, with a message. */
base_status train_state_load(struct train_state *state, const struct model_carrier *carrier,
                             const struct store_checkpoint *checkpoint);

/* Weights and statistics only, from a safetensors file: model_weights_read. */
base_status train_state_load_weights(struct train_state *state, const struct model_carrier *carrier,
                                     const char *path, bool partial);

/* The position as the object of a manifest, and back. */
json_t *train_position_to_json(const struct train_position *position);
base_status train_position_from_json(const json_t *object, struct train_position *position_p);

/* Are the weights finite wherever they are held? A state that is not is never saved. */
bool train_state_finite(const struct train_state *state);

#endif
