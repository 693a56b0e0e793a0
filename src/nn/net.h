/* SPDX-License-Identifier: MIT
 *
 * A range of a model's layers instantiated: activation memory planned and allocated once, kernels
 * chosen; then steps that allocate nothing. The network owns its activations; weights, gradients
 * and statistics are flat buffers of these layers alone. The caller may own them, in shared memory
 * for example, or lend the network a few layers' weights at a time. One thread drives a network;
 * kernels inside use OpenMP.
 */
#ifndef NN_NET_H
#define NN_NET_H

#include "nn/graph.h"

struct nn_net;

/* A group of layers (nn_graph_groups of the network's range) lent for one forward or backward. */
struct nn_loan {
    int group;
    int next; /* the group that this pass borrows after it, or -1: to be fetched meanwhile */
    bool backward;
    /* Set by borrow, as far as the lender lends them; (group's weights.count) floats: */
    const float *weights;
    float *gradients; /* in a backward; complete when the loan is given back */
};

/* For networks whose weights, gradients or both are not in memory as a whole. A pass borrows each
 * group just before the first layer that uses it and gives it back after the last, so it has one
 * at a time. A failed borrow or give_back fails the pass; a pass that fails for whatever reason
 * gives nothing back. Kernels keep nothing of the weights from one call to the next. */
struct nn_lender {
    bool weights, gradients; /* what is lent; the other is in the setup's buffer */
    base_status (*borrow)(void *context, struct nn_loan *loan);
    base_status (*give_back)(void *context, const struct nn_loan *loan);
    void *context;
};

/* For networks whose weights may still be on their way into memory: called in a forward before the
 * first layer of each group, it waits until floats [offset, offset+count) of the network's weights
 * are there. A failure fails the pass. NULL: they are always there. */
struct nn_await {
    base_status (*range)(void *context, size_t offset, size_t count);
    void *context;
};

struct nn_setup {
    int first, last; /* layers first … last-1; last 0: all */
    int n_max;       /* largest batch */
    int in_flight;   /* batches whose backward may be outstanding; 0: one (nn_net_piece) */
    bool training;
    /* Buffers of these layers' floats (nn_graph_weights_of, nn_graph_stats_of); NULL: the network
     * allocates its own, unless they are lent. */
    float *weights, *gradients, *statistics;
    struct nn_lender lender;
    struct nn_await await; /* not with a lender of weights */
    struct nn_reduce reduce;
    struct base_team *team; /* that computes, kept by the caller; NULL: OpenMP's threads */
    /* Kernel plan: "onednn" for all, what nn_net_kernels gave, or NULL for the default. */
    const char *kernels;
    bool apart;          /* every layer by itself, so that hooks see all; otherwise nn/fuse.h */
    bool keep_outputs;   /* every layer's output stays readable after a forward (nn_net_output);
                          * implies apart */
    bool input_gradient; /* the gradient of the network's input too: nn_net_entering's first */
    bool split; /* backward leaves gradients of parameters for later: nn_net_backward_deferred; not
                 * with a lender */
};

/* The graph must outlive the network. */
base_status nn_net_new(const struct nn_graph *graph, const struct nn_setup *setup,
                       struct nn_net **net_p);
void nn_net_free(struct nn_net *net); /* accepts NULL */

/* Bytes of a network that is not made yet. */
struct nn_memory {
    uint64_t weights, gradients, statistics; /* its buffers; 0: lent, or not training */
    uint64_t activations;                    /* of all batches in flight */
    uint64_t scratch; /* the kernels' working memory: that of the layer that wants most */
};
/* setup->kernels NULL stands here for what nn_kernelplan_make chooses. */
base_status nn_net_memory(const struct nn_graph *graph, const struct nn_setup *setup,
                          struct nn_memory *memory_p);
/* Their sum, with `slots` optimiser buffers of the size of the weights. */
uint64_t nn_memory_total(const struct nn_memory *memory, int slots);

/* The network's buffers, first float of layer `first`; NULL: lent, or not training. */
float *nn_net_weights(struct nn_net *net);
float *nn_net_gradients(struct nn_net *net);
float *nn_net_statistics(struct nn_net *net);
/* From the next backward on gradients are written there. */
void nn_net_gradients_at(struct nn_net *net, float *gradients);
/* From the next forward on weights are read there. */
void nn_net_weights_at(struct nn_net *net, float *weights);
uint64_t nn_net_activation_bytes(const struct nn_net *net);

/* "features.0=onednn features.4=onednn …": what was chosen, for the log and run.json. */
const char *nn_net_kernels(const struct nn_net *net);

/* Which of the batches in flight (0 … in_flight-1; at first 0) everything below is about. Each has
 * activations, labels and edges of its own, and a forward may be followed by those of other pieces
 * before its backward. Weights, gradients, statistics and hooks are common: the backwards of two
 * pieces overwrite the same gradients. The bits are those of one piece after the other. */
void nn_net_piece(struct nn_net *net, int piece);

struct nn_batch {
    int n;
    const float *x; /* (n,C,H,W) canonical, kept by the caller until the backward is done;
                     * ignored when first > 0 */
    struct nn_samples samples;
};

struct nn_outcome {
    double loss_sum; /* over the n samples */
    int correct;
    const int32_t *predicted; /* (n), valid until this piece's next forward */
};

/* n may be 0 where there is a reduce or a lender, for the others' sake: only the layers that use
 * the reduce run; everything is borrowed, and lent gradients become 0; no other gradients are
 * written. samples.labels and .targets NULL: predictions only. training: batch statistics and
 * dropout; otherwise running statistics, no dropout. */
base_status nn_net_forward(struct nn_net *net, const struct nn_batch *batch, bool training,
                           struct nn_outcome *outcome_p);

/* Told after each layer, last to first: floats [offset, offset+count) of the network's gradient
 * buffer are complete. Not told of lent gradients. */
struct nn_ready {
    void (*range)(void *context, size_t offset, size_t count);
    void *context;
};

/* Of the batch of the last forward; gradients of scale * loss_sum (scale = 1/batch for a mean).
 * Overwrites the gradient buffer's ranges of these layers. */
base_status nn_net_backward(struct nn_net *net, float scale, struct nn_ready ready);

/* In a network that is `split`, backward passes gradients on through all layers, and leaves out
 * those of the parameters of some layers. Those are computed here, layer by layer, in any order and
 * at any time before the piece's next forward. The bits are those of a backward at once. */
int nn_net_deferred(const struct nn_net *net); /* how many layers are left out */
base_status nn_net_backward_deferred(struct nn_net *net, int which, struct nn_ready ready);

/* Values of layer `index` after the last forward: copies sample i in (C,H,W) order. Always there:
 * what enters and leaves the loss; the others with keep_outputs. */
base_status nn_net_output(const struct nn_net *net, int index, int sample, float *values);
int nn_net_last(const struct nn_net *net); /* index of its last layer */

/* Calls back after each forward of a layer, as `--record` does for its statistics. `values` is
 * (n) x node->out in memory layout: use nn_shape_at. One hook a layer; NULL removes it. A layer
 * inside a fused group has no output of its own and its hook is never called: see `apart`. */
typedef void (*nn_hook)(void *context, const struct nn_node *node, int n, const float *values);
void nn_net_hook(struct nn_net *net, int index, nn_hook hook, void *context);

/* Adds the time of each layer to times[index - first] from now on; NULL: no longer. */
struct nn_layer_time {
    double forward, backward; /* seconds */
};
void nn_net_profile(struct nn_net *net, struct nn_layer_time *times);

/* The cut of a range: tensors that enter before `first` (or leave after `last`): the current one,
 * then every named one still needed. Their memory, (n_max) x shape, and their gradients. */
struct nn_edge {
    struct nn_shape shape;
    float *values, *gradients;
};
int nn_net_entering(const struct nn_net *net, struct nn_edge *edges, int capacity);
int nn_net_leaving(const struct nn_net *net, struct nn_edge *edges, int capacity);

#endif
