/* SPDX-License-Identifier: MIT
 *
 * The first values of a vector, for a branch that needs no others.
 */
#include <string.h>

#include "nn/layer.h"
#include "nn/line.h"

static base_status first_parse(struct nn_line *line, void *config)
{
    return nn_line_int(line, "COUNT", 1, 1 << 20, config);
}

static base_status first_describe(struct nn_node *node)
{
    const int count = *(const int *)node->config;

    if (node->in.planar || node->in.h * node->in.w != 1 || count > node->in.c)
        return base_fail(BASE_ERR_MODEL, "first %d needs a vector of as many values, not %dx%dx%d",
                         count, node->in.c, node->in.h, node->in.w);
    node->out = (struct nn_shape){.c = count, .h = 1, .w = 1, .flat = true};
    return BASE_OK;
}

/* Copies `count` values of each sample, and makes the rest of `to` zeros. */
static void first_copy(const struct nn_pass *p, struct nn_shape from_shape, const float *from,
                       struct nn_shape to_shape, float *to)
{
    const size_t count = (size_t)p->node->out.c;
    const size_t step = nn_shape_floats(from_shape), width = nn_shape_floats(to_shape);

    memset(to, 0, (size_t)p->n * width * sizeof *to);
    for (size_t j = 0; j < (size_t)p->n; j++)
        memcpy(to + j * width, from + j * step, count * sizeof *to);
}

static base_status first_forward(struct nn_pass *p)
{
    first_copy(p, p->node->in, p->x, p->node->out, p->y);
    return BASE_OK;
}

static base_status first_backward(struct nn_pass *p)
{
    if (p->dx != NULL)
        first_copy(p, p->node->out, p->dy, p->node->in, p->dx);
    return BASE_OK;
}

const struct nn_layer nn_layer_first = {
    .name = "first",
    .help = "the first values of a vector",
    .usage = "first COUNT",
    .examples = (const char *const[]){"input 9x1x1\nrelu\nfirst 3\nmse",
                                      "input 9x1x1\nrelu\nsave a\ndense 2\nsave b\nload a\nfirst "
                                      "2\nadd b\nmse",
                                      NULL},
    .config_size = sizeof(int),
    .parse = first_parse,
    .describe = first_describe,
    .forward = first_forward,
    .backward = first_backward,
};
