/* SPDX-License-Identifier: MIT
 *
 * What the files of a network share: netsetup.c makes it, net.c runs it, lend.c gets it weights.
 */
#ifndef NN_NET_PRIVATE_H
#define NN_NET_PRIVATE_H

#include "nn/net.h"
#include "nn/plan.h"

struct nn_net_hook {
    nn_hook call;
    void *context;
};

/* A batch in flight. */
struct nn_piece {
    char *block;            /* the kept part of the plan */
    struct nn_pass *passes; /* (layers) */
    struct nn_samples samples;
    int32_t *labels, *predicted; /* (n_max) */
    uint32_t *ids;               /* (n_max) */
    int n;                       /* of the last forward */
    bool can_learn;              /* the last forward was a training one with labels */
};

struct nn_net {
    const struct nn_graph *graph; /* the caller's, or the view */
    struct nn_graph *view;        /* with layers fused, or NULL */
    struct nn_setup setup;
    struct nn_plan *plan;
    struct nn_piece *pieces;   /* (in_flight) */
    struct nn_piece *piece;    /* the one that calls are about */
    char *shared;              /* the rest of the plan */
    void **states;             /* (layers), of open */
    struct nn_net_hook *hooks; /* (layers) */
    float *scratch;
    size_t scratch_bytes;
    struct nn_range weight_range, stat_range; /* of its layers */
    float *weights, *gradients, *statistics;
    float *own_weights, *own_gradients, *own_statistics;
    struct nn_group *groups; /* with a lender, or an await */
    int group_count;
    struct nn_loan loan; /* the one under way */
    char *kernels;
    struct nn_layer_time *times; /* NULL: not asked for */
};

static inline int nn_net_layers(const struct nn_net *net)
{
    return net->plan->layers;
}

/* Memory of a planned buffer, or NULL. */
float *nn_net_at(const struct nn_net *net, const struct nn_piece *piece, int buffer);

/* Tensors of layers first … last-1 (counted within the network), in buffers whose first floats
 * are those of the model's buffer at `from`; NULL: they are nowhere now. */
void nn_net_point_weights(struct nn_piece *piece, int first, int last, const float *weights,
                          size_t from);
void nn_net_point_gradients(struct nn_piece *piece, int first, int last, float *gradients,
                            size_t from);

/* Around layer j (within the network) of a pass: borrows the group that begins with it, gives back
 * the one that ends with it. Cheap without a lender. */
base_status nn_lend_before(struct nn_net *net, int j, bool backward);
base_status nn_lend_after(struct nn_net *net, int j, bool backward);
/* Before layer j of a forward: waits for the weights of the group that begins with it. */
base_status nn_await_before(const struct nn_net *net, int j);

#endif
