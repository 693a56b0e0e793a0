/* SPDX-License-Identifier: MIT
 *
 * A trial of convolution candidates on one shape: all that serve compute the same random data in
 * turns, and the best time of each counts, so that a disturbed round does no harm. One thread is
 * timed by its CPU clock, which other processes do not stretch; several by the wall clock. Runs on
 * the thread that will drive the network.
 */
#ifndef NN_CONV_TRIAL_H
#define NN_CONV_TRIAL_H

#include "nn/conv/conv.h"
#include "nn/layer.h"

enum { NN_TRIAL_MOST = 16 }; /* candidates */

struct nn_trial_time {
    const struct nn_conv *conv;
    double seconds; /* of the best round */
    double error;   /* L2-relative distance from the reference's results */
};

/* How long to try: so many rounds after the first, or until `seconds` have passed. */
struct nn_trial_effort {
    int rounds;
    double seconds;
};

/* times (NN_TRIAL_MOST): the reference first, then the others that serve. A candidate that stands
 * alone is not run: its time is 0. The node gives the layout of the weights. */
base_status nn_trial(const struct nn_conv_shape *shape, const struct nn_node *node,
                     struct nn_trial_effort effort, struct nn_trial_time *times, int *count_p);

#endif
