/* SPDX-License-Identifier: MIT
 *
 * Which activation lives where: buffers with lifetimes for a range of a model's layers, packed
 * into one block of memory. Pure arithmetic: nn_net_memory asks it what a model would need,
 * nn_net_new allocates what it says.
 */
#ifndef NN_PLAN_H
#define NN_PLAN_H

#include "nn/graph.h"

/* Instead of a buffer: nothing, or the caller's batch itself (planar input, read only). */
enum { NN_PLAN_NONE = -1, NN_PLAN_INPUT = -2 };

struct nn_plan_setup {
    int first, last; /* layers first … last-1 */
    int n;           /* samples */
    bool training;
    int in_flight;                            /* batches of n samples at a time; 0: one */
    bool keep_outputs, input_gradient, split; /* as in nn_setup */
};

/* Buffers of one layer. */
struct nn_plan_node {
    int x, y, other, dx, dy, dother, keep;
    bool first_use; /* in backward: dother holds nothing yet */
    bool runs;      /* its backward has something to do */
    bool deferred;  /* … the gradients of its parameters later (nn_net_backward_deferred) */
    bool y_stays;   /* y is the layer's own and can be read after the forward */
};

struct nn_plan_buffer {
    size_t bytes, offset;
    int begin, end; /* in time: forward of the i-th layer is i, its backward 2*layers-1-i */
};

struct nn_plan_edge {
    int named; /* `save` node, or -1 for the current tensor */
    struct nn_shape shape;
    int values, gradients; /* buffers */
};

struct nn_plan {
    int layers;
    struct nn_plan_node *nodes; /* (layers) */
    struct nn_plan_buffer *buffers;
    int count;
    struct nn_plan_edge *entering, *leaving;
    int enters, leaves;
    size_t bytes; /* of the block that one batch sees */
    size_t kept;  /* its first bytes, which each batch in flight has for itself: what lives from its
                   * forward to its backward. The rest is shared. One batch: all of it */
    size_t total; /* of all batches in flight */
};

base_status nn_plan_new(const struct nn_graph *graph, const struct nn_plan_setup *setup,
                        struct nn_plan **plan_p);
void nn_plan_free(struct nn_plan *plan); /* accepts NULL */

#endif
