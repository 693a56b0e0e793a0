/* SPDX-License-Identifier: MIT
 *
 * Adds a named tensor of the same shape: residual connections.
 */
#include <string.h>

#include "nn/layer.h"
#include "nn/name.h"
#include "nn/ops.h"
#include "nn/simd/simd.h"

static base_status add_describe(struct nn_node *node)
{
    node->out = node->in;
    node->flops = (double)nn_shape_values(node->in);
    return BASE_OK;
}

static base_status add_forward(struct nn_pass *p)
{
    nn_simd()->add((size_t)p->n * nn_shape_floats(p->node->in), p->x, p->other, p->y);
    return BASE_OK;
}

static base_status add_backward(struct nn_pass *p)
{
    size_t count = (size_t)p->n * nn_shape_floats(p->node->in);

    if (p->dother != NULL)
        nn_simd()->add(count, p->dother, p->dy, p->dother);
    if (p->dx != NULL && p->dx != p->dy)
        memcpy(p->dx, p->dy, count * sizeof *p->dx);
    return BASE_OK;
}

/* A vector and an image of as many values can be added here, but that cannot be expressed without
 * knowing the shape. */
static base_status add_express(const struct nn_node *node, struct nn_ops *ops)
{
    const char *named = ops->named, *current = ops->current;
    struct nn_op *op;

    if (!node->in.flat && ops->named_flat)
        return base_fail(BASE_ERR_MODEL,
                         "line %d: add cannot be exported where an image and a flattened tensor "
                         "meet; put `flatten` before it",
                         node->line);
    if (node->in.flat && !ops->named_flat) {
        ops->current = named;
        nn_op_whole(nn_ops_add(ops, "Flatten"), "axis", 1);
        named = ops->current;
        ops->current = current;
    }
    op = nn_ops_add(ops, "Add");
    op->input[op->inputs++] = (struct nn_op_input){.value = named};
    return BASE_OK;
}

const struct nn_layer nn_layer_add = {
    .name = "add",
    .help = "adds a named tensor of the same shape",
    .usage = "add NAME",
    .examples = (const char *const[]){"input 9x4x4\nrelu\nsave a\nconv 9 3x3 pad=1\nbn\nadd a\n"
                                      "relu\ndense 3\nmse",
                                      "input 9x1x1\nsave a\nadd a\ndense 3\nmse", NULL},
    .config_size = sizeof(struct nn_name),
    .parse = nn_name_parse,
    .describe = add_describe,
    .forward = add_forward,
    .backward = add_backward,
    .express = add_express,
    .in_place = true,
    .naming = NN_NAMING_READ,
};
