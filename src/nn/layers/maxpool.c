/* SPDX-License-Identifier: MIT
 *
 * Largest value of each window. Keeps a byte an output: where in the window it was.
 */
#include "nn/pool.h"

static base_status maxpool_describe(struct nn_node *node)
{
    base_status st = nn_pool_describe(node);

    node->keep_bytes = nn_shape_floats(node->out);
    return st;
}

static base_status maxpool_forward(struct nn_pass *p)
{
    struct nn_pool_shape shape = nn_pool_shape(p->node);

    nn_simd()->maxpool(p->n, &shape, p->x, p->y, p->keep);
    return BASE_OK;
}

static base_status maxpool_backward(struct nn_pass *p)
{
    struct nn_pool_shape shape = nn_pool_shape(p->node);

    nn_simd()->maxpool_backward(p->n, &shape, p->dy, p->keep, p->dx);
    return BASE_OK;
}

static base_status maxpool_express(const struct nn_node *node, struct nn_ops *ops)
{
    nn_pool_express(node, nn_ops_add(ops, "MaxPool"));
    return BASE_OK;
}

const struct nn_layer nn_layer_maxpool = {
    .name = "maxpool",
    .help = "the largest value of each window",
    .usage = "maxpool KHxKW [stride=S] [pad=P]",
    .examples = (const char *const[]){"input 3x6x4\nmaxpool 2\ndense 3\nmse",
                                      "input 9x7x7\nmaxpool 3x3 stride=2 pad=1\ndense 3\nmse",
                                      "input 8x5x6\nmaxpool 3x2 stride=1\ndense 3\nmse", NULL},
    .config_size = sizeof(struct nn_pool_config),
    .parse = nn_pool_parse,
    .describe = maxpool_describe,
    .forward = maxpool_forward,
    .backward = maxpool_backward,
    .express = maxpool_express,
};
