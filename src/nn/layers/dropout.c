/* SPDX-License-Identifier: MIT
 *
 * Dropout. Which elements live is a function of (seed, layer, epoch, sample id, element), so
 * nothing is kept: the backward computes it again.
 */
#include <string.h>

#include "nn/dropout.h"
#include "nn/line.h"
#include "nn/ops.h"

static base_status dropout_parse(struct nn_line *line, void *config)
{
    struct nn_dropout_config *c = config;

    return nn_line_real(line, "RATE", 0.0, 0.99, &c->rate);
}

static base_status dropout_describe(struct nn_node *node)
{
    const struct nn_dropout_config *c = node->config;

    node->out = node->in;
    node->identity = c->rate == 0.0;
    return BASE_OK;
}

static base_status dropout_forward(struct nn_pass *p)
{
    if (p->training)
        nn_dropout(p->node, p->samples, p->n, p->samples->ids, p->x, p->y, NULL);
    else if (p->y != p->x)
        memcpy(p->y, p->x, (size_t)p->n * nn_shape_floats(p->node->in) * sizeof *p->y);
    return BASE_OK;
}

static base_status dropout_backward(struct nn_pass *p)
{
    nn_dropout(p->node, p->samples, p->n, p->samples->ids, p->dy, p->dx, NULL);
    return BASE_OK;
}

/* Outside training dropout does nothing, so it adds no operation. */
static base_status dropout_express(const struct nn_node *node, struct nn_ops *ops)
{
    (void)node;
    (void)ops;
    return BASE_OK;
}

const struct nn_layer nn_layer_dropout = {
    .name = "dropout",
    .help = "zeroes a share of the values while training, scales up the rest",
    .usage = "dropout RATE",
    .examples = (const char *const[]){"input 9x4x3\ndropout .25\ndense 3\nmse",
                                      "input 5x1x1\ndense 11\ndropout 0.5\ndense 3\nmse",
                                      "input 5x1x1\ndense 11\ndropout 0\ndense 3\nmse", NULL},
    .config_size = sizeof(struct nn_dropout_config),
    .parse = dropout_parse,
    .describe = dropout_describe,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .express = dropout_express,
    .in_place = true,
};
