/* SPDX-License-Identifier: MIT
 *
 * Groups of consecutive layers computed as one. What a file in nn/fused/ provides:
 * `const struct nn_fused nn_fused_NAME`, a layer that no model names: it stands for those in its
 * name, and gives their results to rounding.
 */
#ifndef NN_FUSE_H
#define NN_FUSE_H

#include "nn/graph.h"

struct nn_fused {
    /* name "bn+relu": the layers it stands for. Its node has the config, tensors and input of the
     * first of them, the output of the last, and keep memory for all: keep_fixed, then keep_bytes
     * a sample; node[i] is that of the i-th, with its config and index. No usage, parse or
     * describe; examples as any layer's. */
    struct nn_layer layer;
    bool (*fits)(const struct nn_node *nodes); /* the nodes of such a group; NULL: all do */
};

extern const struct nn_fused *const nn_fused_registry[];
extern const size_t nn_fused_count;

/* A view of `graph`, which must outlive it, with the groups that lie wholly in layers first …
 * last-1 fused. Every node keeps its place: the first of a group computes it, the others change
 * nothing. nn_graph_free. */
struct nn_graph *nn_graph_fuse(const struct nn_graph *graph, int first, int last);

#endif
