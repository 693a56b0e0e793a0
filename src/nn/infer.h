/* SPDX-License-Identifier: MIT
 *
 * A model made ready to answer: forward only. An `nn_infer` holds what all answers share, the
 * layers as they are computed and their weights, and does not change once made. An `nn_lane`
 * computes with it: it owns its activations, and one thread at a time uses it. Any number of lanes
 * may run at once.
 */
#ifndef NN_INFER_H
#define NN_INFER_H

#include "nn/net.h"

struct nn_infer;
struct nn_lane;

struct nn_infer_setup {
    const float *weights, *statistics; /* whole-model buffers */
    int n_max;                         /* largest batch of a lane */
    const char *kernels;               /* NULL: by rule (nn/conv/prefer.h); else as in nn/net.h */
};

/* Folds, chooses kernels and prepares weights. The graph must outlive it, the buffers need not. */
base_status nn_infer_new(const struct nn_graph *graph, const struct nn_infer_setup *setup,
                         struct nn_infer **infer_p);
void nn_infer_free(struct nn_infer *infer); /* accepts NULL; after its lanes */

/* "features.0=direct features.8=patches,winograd4@9 …": the kernel of every convolution, and the
 * batch from which another one takes over. */
const char *nn_infer_kernels(const struct nn_infer *infer);

/* What a batch of n takes: multiply-adds count 2; bytes of all weights, as the kernels read them.
 */
struct nn_infer_cost {
    double nominal_flops, executed_flops, weight_bytes;
};
struct nn_infer_cost nn_infer_cost(const struct nn_infer *infer, int n);

/* It has as many threads as nn_threads_set gave the calling thread, most of them its own
 * (base/team.h); layers that know of no team use the OpenMP threads of who runs it. */
base_status nn_lane_new(const struct nn_infer *infer, struct nn_lane **lane_p);
void nn_lane_free(struct nn_lane *lane); /* accepts NULL */

/* x (n,C,H,W) canonical, n from 1 to n_max; y (n,classes): probabilities after a softmax, the
 * outputs themselves with other losses. Allocates nothing. */
base_status nn_lane_run(struct nn_lane *lane, int n, const float *x, float *y);

/* Adds the time of each layer's forward to times[layer] from now on; NULL: no longer. */
void nn_lane_profile(struct nn_lane *lane, struct nn_layer_time *times);
uint64_t nn_lane_activation_bytes(const struct nn_lane *lane);

#endif
