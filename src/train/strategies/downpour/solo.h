/* SPDX-License-Identifier: MIT
 *
 * A worker that trains alone over a block of a round's samples: `downpour`'s work between two calls
 * to the manager. It begins with the round's weights, makes as many steps as the round has, and
 * knows at any moment how far it has come and how weights and statistics have changed since, so
 * that a block that is interrupted, by a lost worker or by the round's end, can be taken up again
 * on the same or newer weights.
 *
 * Every sample counts alike: a step by fewer samples than the block's share of a batch, such as
 * the block's last, is as much smaller.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_SOLO_H
#define TRAIN_STRATEGIES_DOWNPOUR_SOLO_H

#include "train/snapshot.h"
#include "train/step.h"
#include "train/strategies/downpour/blocks.h"
#include "train/strategies/downpour/call.h"

/* A block that this worker has computed, or a part of it. */
struct train_own {
    bool valid;
    bool complete;
    bool late; /* its round is over, and went on without it */
    struct downpour_round round;
    uint32_t block, samples, done;
    uint64_t total; /* samples of all blocks of its round */
    struct train_outcome outcome;
    bool unsettled; /* the manager has been sent it, and has not said whether it counts */
    bool counts;    /* it does: sent again, it is the same result */
    float *values;  /* the change of weights, then of statistics, so far */
};

struct downpour_solo { /* zeros: nothing is open */
    enum train_split split;
    double alpha;         /* of `dirichlet` */
    struct train_own own; /* across views */

    /* Of a view. */
    uint32_t *order, *ids;
    int32_t *classes;

    /* Of a round. */
    struct train_snapshot base; /* its beginning */
    float *pushed; /* where changes are added as they come: weights and statistics whose change is
                    * not on its way yet is counted from here; otherwise NULL */
    struct downpour_round round;
    struct train_division division;
    uint32_t counts[COMM_MAX_WORKERS]; /* samples of each block */
};

/* `pushes`: changes are added as they come. */
base_status downpour_solo_open(struct downpour_solo *solo, const struct train_session *session,
                               bool pushes);
void downpour_solo_close(struct downpour_solo *solo); /* a view ends; `own` stays */
void downpour_solo_fini(struct downpour_solo *solo);  /* all of it goes */

/* Floats of a result. */
size_t downpour_solo_floats(const struct train_session *session);

/* Keeps the state, and describes the round from there to step `goal`, but for its blocks. */
base_status downpour_solo_begin(struct downpour_solo *solo, const struct train_session *session,
                                int64_t goal);
/* The round's blocks are known: divides its samples. Collective where each worker has its own;
 * `computes`: this one has a block. */
base_status downpour_solo_divide(struct downpour_solo *solo, struct train_session *session,
                                 bool computes);
/* Samples from a round's beginning to its end. */
uint32_t downpour_solo_samples(const struct train_session *session,
                               const struct downpour_round *round);

/* `block` of the round is this worker's: it goes on where it was, or begins. */
void downpour_solo_accept(struct downpour_solo *solo, uint32_t block);
/* Called after every step; *over_p: the round is over. */
typedef base_status downpour_solo_look(struct train_session *session, void *context, bool *over_p);
/* Trains over the rest of own's block, or until `look` says that the round is over. After a lost
 * worker, too, `own` has what was done. */
base_status downpour_solo_train(struct downpour_solo *solo, struct train_session *session,
                                downpour_solo_look *look, void *context, bool *over_p);

/* How weights and statistics have changed since the round's beginning, or since `pushed`, into
 * own.values. */
base_status downpour_solo_measure(struct downpour_solo *solo, const struct train_session *session);
/* Weights and statistics become `fetched`, plus what is not on its way yet. */
void downpour_solo_fetch(struct downpour_solo *solo, struct train_session *session,
                         const float *fetched);

/* Weights and statistics become those of the round's beginning, changed by `values`; NULL: not
 * changed. Slots stay as they are. */
void downpour_solo_rebase(const struct downpour_solo *solo, struct train_session *session,
                          const float *values);

#endif
