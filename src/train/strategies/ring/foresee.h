/* SPDX-License-Identifier: MIT
 *
 * The ready rule on paper: how long a step takes where every part of it takes as long as it is
 * said to. Pure arithmetic, the same on every worker.
 */
#ifndef TRAIN_STRATEGIES_RING_FORESEE_H
#define TRAIN_STRATEGIES_RING_FORESEE_H

#include "train/strategies/ring/costs.h"

struct ring_outlook {              /* of a step */
    double seconds;                /* from the first forward to the last gradient */
    double idle;                   /* what all workers together wait, of their time */
    double busy[COMM_MAX_WORKERS]; /* what each computes, and does for messages */
};

/* Where steps overlap: one of many. */
void ring_foresee(const struct ring_cut *cut, const struct ring_times *times, int pieces,
                  struct ring_outlook *outlook_p);

#endif
