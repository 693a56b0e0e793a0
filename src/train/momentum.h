/* SPDX-License-Identifier: MIT
 *
 * `downpour:momentum=B`: what a worker sends is not its change of a round but a running mean of its
 * changes, of which B stays and 1 - B is new (worker momentum, Karimireddy et al., ICML 2021). Over
 * rounds the noise of honest workers averages out, and an attack can no longer hide in it. The
 * optimiser's momentum, which each worker has for itself too, is of steps within a round.
 *
 * The mean is an extra of the state, each worker's own, and moves when a round is committed in
 * which the result counts. It begins with the worker's first change. A checkpoint has the mean of
 * all workers'. Running statistics go as they are. One thread.
 */
#ifndef TRAIN_MOMENTUM_H
#define TRAIN_MOMENTUM_H

#include "train/team.h"

/* The name of the extra (train/strategy.h) that has it. */
#define TRAIN_MOMENTUM "strategy.momentum"

struct train_momentum { /* zeros: changes go as they are */
    double stays;       /* the share of it that does */
    size_t floats;
    bool begun; /* the mean has a change in it */

    /* Across views. */
    float *next; /* the mean if the newest result counts */
    bool waits;  /* there is a result of which `next` is … */
    bool counts; /* … and the round's end has told that it counts */
};

/* A view begins; `mean` is the state's, NULL: there is none. */
base_status train_momentum_open(struct train_momentum *momentum, double stays, const float *mean,
                                size_t floats);
void train_momentum_fini(struct train_momentum *momentum);

/* A block is complete: `values` become what is sent. */
void train_momentum_smooth(struct train_momentum *momentum, const float *mean, float *values);
/* The round is committed, also as another worker's state tells. */
void train_momentum_commit(struct train_momentum *momentum, float *mean);

/* Collective, before a checkpoint: at rank 0 *mean_p becomes that of the workers that compute,
 * until the caller undoes it. */
base_status train_momentum_saving(struct train_momentum *momentum, struct train_team *team,
                                  bool computes, float **mean_p);

#endif
