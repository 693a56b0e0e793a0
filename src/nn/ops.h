/* SPDX-License-Identifier: MIT
 *
 * A model as a list of standard operators, for writers of other formats. Names, attributes and
 * meanings are those of ONNX, operator set 17; tensors have their canonical shapes, and images are
 * (N,C,H,W). Each layer says its own part (nn_layer.express): it adds operators, the first of which
 * reads the current tensor, and what the last one gives is current for the next layer.
 *
 * One thread builds a list; nothing here computes.
 */
#ifndef NN_OPS_H
#define NN_OPS_H

#include "nn/graph.h"

enum { NN_OP_INPUTS = 5, NN_OP_ATTRIBUTES = 6, NN_OP_NUMBERS = 4 };

/* What an operator reads: the value of that name, or one of the model's tensors. */
struct nn_op_input {
    const char *value; /* NN_OPS_INPUT or another operator's output; NULL: a tensor */
    const struct nn_tensor *tensor;
    bool statistic; /* the tensor is in the statistics buffer, not in the weight buffer */
};

struct nn_op_attribute {
    const char *name;
    bool real;                      /* one float; otherwise whole numbers … */
    int count;                      /* … in a list of so many; 0: a single one */
    int64_t numbers[NN_OP_NUMBERS]; /* … */
    float number;
};

struct nn_op {
    const char *type;           /* "Conv" */
    const struct nn_node *node; /* that it is a part of */
    char *output;               /* "features.0/Conv": unique in the list */
    int inputs, attributes;
    struct nn_op_input input[NN_OP_INPUTS];
    struct nn_op_attribute attribute[NN_OP_ATTRIBUTES];
};

#define NN_OPS_INPUT "input"

/* The operators in the order of computation; the last one gives the model's output. */
struct nn_ops {
    struct nn_op **at;
    size_t count;
    /* While it is built: */
    const struct nn_node *node;
    const char *current, *named; /* the current tensor; the named one of add, or NULL */
    bool named_flat;
};

/* Fails for a layer that cannot be expressed, and says which. Graph and list: the graph must
 * outlive it. */
base_status nn_ops_init(struct nn_ops *ops, const struct nn_graph *graph);
void nn_ops_fini(struct nn_ops *ops); /* accepts zeros */

/* For nn_layer.express: an operator that reads the current tensor and makes it anew; then its
 * other inputs and its attributes, in order. */
struct nn_op *nn_ops_add(struct nn_ops *ops, const char *type);
void nn_op_param(struct nn_op *op, int index);
void nn_op_stat(struct nn_op *op, int index);
void nn_op_whole(struct nn_op *op, const char *name, int number);
void nn_op_pair(struct nn_op *op, const char *name, const int pair[2]);
void nn_op_pads(struct nn_op *op, const int pad[2]); /* the same on both sides */
void nn_op_real(struct nn_op *op, const char *name, double number);
/* An image (N,C,H,W) becomes (N,C*H*W); for what reads it as a vector. Nothing for a vector. */
void nn_ops_flatten(struct nn_ops *ops);

#endif
