/* SPDX-License-Identifier: MIT
 *
 * Moves ranges of the state between the workers that hold them: what a view's members lack when it
 * begins, and tensor by tensor to and from the leader, who writes and reads files and needs memory
 * for one tensor. Every worker makes the same calls; who sends what to whom follows from holds and
 * places, which all of them know (train/holds.h).
 */
#ifndef TRAIN_CARRY_H
#define TRAIN_CARRY_H

#include "train/state.h"
#include "train/team.h"

/* Entering a view: every worker gets what it wants of `version`. What is given lies in `from`, what
 * is got goes into `to`; they may be the same memory. `held` and `wanted` are of all workers.
 * Statistics that this worker lacks go into `statistics`. */
base_status train_carry_missing(struct train_team *team, const struct train_holds *held,
                                const struct train_holds *wanted, struct train_version version,
                                const struct train_state *from, const struct train_state *to,
                                float *statistics);

struct train_carry {
    struct train_team *team;
    struct train_state *state;
    const struct train_holds *places; /* of all workers */
    int leader;                       /* the rank that has the file */
    float *room;                      /* the leader's, for a tensor */
    struct model_carrier carrier;     /* the leader's */
};

base_status train_carry_begin(struct train_carry *carry, struct train_team *team,
                              struct train_state *state, const struct train_holds *places,
                              int leader);
void train_carry_end(struct train_carry *carry); /* accepts zeros */
/* For the leader's reading and writing; NULL where one worker is alone, which needs none. */
const struct model_carrier *train_carry_leader(const struct train_carry *carry);

/* The others' part of what the leader does with its carrier meanwhile. Of a save, all weights, then
 * all slots; of a load, what the leader finds in the file until train_carry_loaded. */
base_status train_carry_serve_save(struct train_carry *carry);
/* Ends a load, on every worker. `good` is the leader's: it has read the whole file; on return it is
 * that of all. Statistics and their counts then come from the leader, too. */
base_status train_carry_loaded(struct train_carry *carry, bool *good);

#endif
