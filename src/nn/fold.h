/* SPDX-License-Identifier: MIT
 *
 * A trained model with its batch norms folded away: what a `bn` does with running statistics is a
 * factor and an addend a channel, which the convolution or dense layer before it can apply with its
 * weights and bias. For models that only answer, and for files that hold such models.
 */
#ifndef NN_FOLD_H
#define NN_FOLD_H

#include "nn/graph.h"

struct nn_fold {
    /* The model with every node in its place. A layer that took over a batch norm has a bias; the
     * batch norm changes nothing any more and has no tensors. One that follows no convolution or
     * dense layer stays as it is. */
    struct nn_graph *graph;
    float *weights, *statistics; /* buffers of that graph: nn_graph_param says where a tensor is */
    void **configs;              /* (layers) of the layers that changed, else NULL */
};

/* `graph` must outlive the result; the buffers need not. The arithmetic is in double. */
base_status nn_fold_init(struct nn_fold *fold, const struct nn_graph *graph, const float *weights,
                         const float *statistics);
void nn_fold_fini(struct nn_fold *fold); /* accepts one filled with zeros, or half-built */

#endif
