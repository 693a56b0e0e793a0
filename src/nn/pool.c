/* SPDX-License-Identifier: MIT
 *
 * Parsing and shapes of pooling layers: nn/pool.h.
 */
#include "nn/pool.h"

#include <string.h>

#include "nn/line.h"

base_status nn_pool_parse(struct nn_line *line, void *config)
{
    base_status st = BASE_OK;
    struct nn_pool_config *c = config;

    TRY(nn_line_pair(line, "window", 1, NN_MAX_POOL, c->kernel));
    memcpy(c->stride, c->kernel, sizeof c->stride);
    TRY(nn_line_opt_pair(line, "stride", 1, NN_MAX_POOL, c->stride));
    TRY(nn_line_opt_pair(line, "pad", 0, NN_MAX_POOL, c->pad));
    /* Otherwise a window could hold nothing but padding. */
    if (2 * c->pad[0] > c->kernel[0] || 2 * c->pad[1] > c->kernel[1])
        TRY(base_fail(BASE_ERR_MODEL, "%s: pad may be at most half the window (usage: %s)",
                      line->words[0], line->usage));
out:
    return st;
}

base_status nn_pool_describe(struct nn_node *node)
{
    const struct nn_pool_config *c = node->config;
    int h = node->in.h + 2 * c->pad[0], w = node->in.w + 2 * c->pad[1];

    if (nn_node_needs_image(node) != BASE_OK)
        return BASE_ERR_MODEL;
    if (c->kernel[0] > h || c->kernel[1] > w)
        return base_fail(BASE_ERR_MODEL,
                         "%s: a window of %dx%d does not fit an image of %dx%d; use fewer or "
                         "smaller pools, or larger images",
                         node->layer->name, c->kernel[0], c->kernel[1], h, w);
    node->out = (struct nn_shape){.c = node->in.c,
                                  .h = (h - c->kernel[0]) / c->stride[0] + 1,
                                  .w = (w - c->kernel[1]) / c->stride[1] + 1};
    node->flops = (double)nn_shape_values(node->out) * c->kernel[0] * c->kernel[1];
    return BASE_OK;
}

bool nn_pool_halves(const struct nn_node *node)
{
    const struct nn_pool_config *c = node->config;

    for (int axis = 0; axis < 2; axis++)
        if (c->kernel[axis] != 2 || c->stride[axis] != 2 || c->pad[axis] != 0)
            return false;
    return node->in.h % 2 == 0 && node->in.w % 2 == 0;
}

struct nn_pool_shape nn_pool_shape(const struct nn_node *node)
{
    const struct nn_pool_config *c = node->config;

    return (struct nn_pool_shape){
        .c8 = nn_pad8(node->in.c) / NN_BLOCK,
        .h = node->in.h,
        .w = node->in.w,
        .ho = node->out.h,
        .wo = node->out.w,
        .kernel = {c->kernel[0], c->kernel[1]},
        .stride = {c->stride[0], c->stride[1]},
        .pad = {c->pad[0], c->pad[1]},
    };
}

void nn_pool_express(const struct nn_node *node, struct nn_op *op)
{
    const struct nn_pool_config *c = node->config;

    nn_op_pair(op, "kernel_shape", c->kernel);
    nn_op_pair(op, "strides", c->stride);
    nn_op_pads(op, c->pad);
}
