/* SPDX-License-Identifier: MIT
 *
 * A model made ready to answer: forward only. An `nn_infer` holds what all answers share, the
 * layers as they are computed and their weights, and does not change once made. An `nn_lane`
 * computes with it: it owns its activations, and one thread at a time uses it. Any number of lanes
 * may run at once.
 */
#ifndef NN_INFER_H
#define NN_INFER_H

#include "nn/graph.h"

struct nn_infer;
struct nn_lane;

struct nn_infer_setup {
    const float *weights, *statistics; /* whole-model buffers */
    int n_max;                         /* largest batch of a lane */
    const char *kernels;               /* as in nn/net.h */
};

/* Graph and buffers must outlive it. */
base_status nn_infer_new(const struct nn_graph *graph, const struct nn_infer_setup *setup,
                         struct nn_infer **infer_p);
void nn_infer_free(struct nn_infer *infer); /* accepts NULL; after its lanes */

/* Computes on as many threads as nn_threads_set gave the calling thread. */
base_status nn_lane_new(const struct nn_infer *infer, struct nn_lane **lane_p);
void nn_lane_free(struct nn_lane *lane); /* accepts NULL */

/* x (n,C,H,W) canonical, n from 1 to n_max; y (n,classes): probabilities behind a softmax, the
 * outputs themselves behind other losses. Allocates nothing. */
base_status nn_lane_run(struct nn_lane *lane, int n, const float *x, float *y);

#endif
