/* SPDX-License-Identifier: MIT
 *
 * Reads an image as a vector. Memory stays as it is; `dense` knows its order.
 */
#include "nn/layer.h"
#include "nn/ops.h"

static base_status flatten_describe(struct nn_node *node)
{
    node->out = node->in;
    node->out.flat = true;
    node->identity = true;
    return BASE_OK;
}

static base_status flatten_express(const struct nn_node *node, struct nn_ops *ops)
{
    (void)node;
    nn_ops_flatten(ops);
    return BASE_OK;
}

const struct nn_layer nn_layer_flatten = {
    .name = "flatten",
    .help = "an image becomes a vector (dense does it by itself)",
    .usage = "flatten",
    .examples = (const char *const[]){"input 3x4x3\nflatten\ndense 3\nmse",
                                      "input 9x2x3\nrelu\nflatten\nrelu\ndense 3\nmse", NULL},
    .describe = flatten_describe,
    .express = flatten_express,
    .takes_planar = true,
};
