/* SPDX-License-Identifier: MIT
 *
 * y = max(x, 0). The backward looks at y, so x may be overwritten.
 */
#include "nn/layer.h"
#include "nn/ops.h"
#include "nn/simd/simd.h"

static base_status relu_describe(struct nn_node *node)
{
    node->out = node->in;
    node->flops = (double)nn_shape_values(node->in);
    return BASE_OK;
}

static base_status relu_forward(struct nn_pass *p)
{
    nn_simd()->relu((size_t)p->n * nn_shape_floats(p->node->in), p->x, p->y);
    return BASE_OK;
}

static base_status relu_backward(struct nn_pass *p)
{
    nn_simd()->relu_backward((size_t)p->n * nn_shape_floats(p->node->in), p->y, p->dy, p->dx);
    return BASE_OK;
}

static base_status relu_express(const struct nn_node *node, struct nn_ops *ops)
{
    (void)node;
    nn_ops_add(ops, "Relu");
    return BASE_OK;
}

const struct nn_layer nn_layer_relu = {
    .name = "relu",
    .help = "negative values become zero",
    .usage = "relu",
    .examples = (const char *const[]){"input 3x4x4\nrelu\ndense 3\nmse",
                                      "input 10x1x1\ndense 9\nrelu\ndense 3\nmse", NULL},
    .describe = relu_describe,
    .forward = relu_forward,
    .backward = relu_backward,
    .express = relu_express,
    .needs_y = true,
    .in_place = true,
};
