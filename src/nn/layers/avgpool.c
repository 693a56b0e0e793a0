/* SPDX-License-Identifier: MIT
 *
 * Average of each window; padding counts as zeros, as in PyTorch.
 */
#include "nn/pool.h"

static base_status avgpool_forward(struct nn_pass *p)
{
    struct nn_pool_shape shape = nn_pool_shape(p->node);

    nn_simd()->avgpool(p->n, &shape, p->x, p->y);
    return BASE_OK;
}

static base_status avgpool_backward(struct nn_pass *p)
{
    struct nn_pool_shape shape = nn_pool_shape(p->node);

    nn_simd()->avgpool_backward(p->n, &shape, p->dy, p->dx);
    return BASE_OK;
}

static base_status avgpool_express(const struct nn_node *node, struct nn_ops *ops)
{
    struct nn_op *op = nn_ops_add(ops, "AveragePool");

    nn_pool_express(node, op);
    nn_op_whole(op, "count_include_pad", 1);
    return BASE_OK;
}

const struct nn_layer nn_layer_avgpool = {
    .name = "avgpool",
    .help = "the average of each window, padding counted as zeros",
    .usage = "avgpool KHxKW [stride=S] [pad=P]",
    .examples = (const char *const[]){"input 3x6x4\navgpool 2\ndense 3\nmse",
                                      "input 9x7x7\navgpool 3x3 stride=2 pad=1\ndense 3\nmse",
                                      "input 8x5x6\navgpool 3x2 stride=1\ndense 3\nmse", NULL},
    .config_size = sizeof(struct nn_pool_config),
    .parse = nn_pool_parse,
    .describe = nn_pool_describe,
    .forward = avgpool_forward,
    .backward = avgpool_backward,
    .express = avgpool_express,
};
