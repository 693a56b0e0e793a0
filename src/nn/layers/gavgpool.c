/* SPDX-License-Identifier: MIT
 *
 * Global average: one value a channel, the average pool whose window is the image.
 */
#include "nn/layer.h"
#include "nn/ops.h"
#include "nn/simd/simd.h"

static base_status gavgpool_describe(struct nn_node *node)
{
    if (nn_node_needs_image(node) != BASE_OK)
        return BASE_ERR_MODEL;
    node->out = (struct nn_shape){.c = node->in.c, .h = 1, .w = 1};
    node->flops = (double)nn_shape_values(node->in);
    return BASE_OK;
}

static struct nn_pool_shape gavgpool_shape_of(const struct nn_node *node)
{
    return (struct nn_pool_shape){
        .c8 = nn_pad8(node->in.c) / NN_BLOCK,
        .h = node->in.h,
        .w = node->in.w,
        .ho = 1,
        .wo = 1,
        .kernel = {node->in.h, node->in.w},
        .stride = {1, 1},
    };
}

static base_status gavgpool_forward(struct nn_pass *p)
{
    struct nn_pool_shape shape = gavgpool_shape_of(p->node);

    nn_simd()->avgpool(p->n, &shape, p->x, p->y);
    return BASE_OK;
}

static base_status gavgpool_backward(struct nn_pass *p)
{
    struct nn_pool_shape shape = gavgpool_shape_of(p->node);

    nn_simd()->avgpool_backward(p->n, &shape, p->dy, p->dx);
    return BASE_OK;
}

static base_status gavgpool_express(const struct nn_node *node, struct nn_ops *ops)
{
    (void)node;
    nn_ops_add(ops, "GlobalAveragePool");
    return BASE_OK;
}

const struct nn_layer nn_layer_gavgpool = {
    .name = "gavgpool",
    .help = "the average of each channel over the whole image",
    .usage = "gavgpool",
    .examples = (const char *const[]){"input 9x4x5\ngavgpool\ndense 3\nmse",
                                      "input 3x1x1\ngavgpool\ndense 3\nmse", NULL},
    .describe = gavgpool_describe,
    .forward = gavgpool_forward,
    .backward = gavgpool_backward,
    .express = gavgpool_express,
};
