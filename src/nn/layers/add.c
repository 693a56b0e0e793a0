/* SPDX-License-Identifier: MIT
 *
 * Adds a named tensor of the same shape: residual connections.
 */
#include <string.h>

#include "nn/layer.h"
#include "nn/name.h"
#include "nn/simd/simd.h"

static base_status describe(struct nn_node *node)
{
    node->out = node->in;
    node->flops = (double)nn_shape_values(node->in);
    return BASE_OK;
}

static base_status forward(struct nn_pass *p)
{
    nn_simd()->add((size_t)p->n * nn_shape_floats(p->node->in), p->x, p->other, p->y);
    return BASE_OK;
}

static base_status backward(struct nn_pass *p)
{
    size_t count = (size_t)p->n * nn_shape_floats(p->node->in);

    if (p->dother != NULL)
        nn_simd()->add(count, p->dother, p->dy, p->dother);
    if (p->dx != NULL && p->dx != p->dy)
        memcpy(p->dx, p->dy, count * sizeof *p->dx);
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
    .describe = describe,
    .forward = forward,
    .backward = backward,
    .in_place = true,
    .naming = NN_NAMING_READ,
};
