/* SPDX-License-Identifier: MIT
 *
 * Fully connected layer: a convolution whose kernel covers its whole input, so an image is
 * flattened by reading it, in whichever of the two layouts it has.
 */
#include <math.h>

#include "nn/layer.h"
#include "nn/line.h"
#include "nn/ops.h"
#include "nn/simd/simd.h"

enum { MAX_OUT = 1 << 20 };

struct config {
    int out;
    bool bias;
};

static base_status dense_parse(struct nn_line *line, void *config)
{
    base_status st = BASE_OK;
    struct config *c = config;

    c->bias = true;
    TRY(nn_line_int(line, "OUT", 1, MAX_OUT, &c->out));
    TRY(nn_line_opt_flag(line, "bias", &c->bias));
out:
    return st;
}

static bool *dense_bias_of(void *config)
{
    return &((struct config *)config)->bias;
}

static base_status dense_describe(struct nn_node *node)
{
    const struct config *c = node->config;
    struct nn_shape in = node->in;
    double fan_in = (double)nn_shape_values(in);
    float bound = (float)(1.0 / sqrt(fan_in));

    node->out = (struct nn_shape){.c = c->out, .h = 1, .w = 1, .flat = true};
    nn_node_param(node, "weight",
                  (struct nn_tensor){
                      .order = in.planar ? NN_K_CHW : NN_K_BLOCKED,
                      .rank = 2,
                      .dims = {c->out, in.c, in.h, in.w},
                      .bound = bound,
                  });
    if (c->bias)
        nn_node_param(node, "bias", nn_tensor_vector(c->out, NN_START_UNIFORM, bound));
    node->flops = 2.0 * fan_in * c->out;
    return BASE_OK;
}

static base_status dense_forward(struct nn_pass *p)
{
    int k = (int)nn_shape_floats(p->node->in), o8 = nn_pad8(p->node->out.c) / NN_BLOCK;

    nn_simd()->dense_forward(p->team, p->n, k, o8, p->x, p->param[0], p->param[1], p->y);
    return BASE_OK;
}

static base_status dense_backward(struct nn_pass *p)
{
    int k = (int)nn_shape_floats(p->node->in), o8 = nn_pad8(p->node->out.c) / NN_BLOCK;

    if (p->dparam[0] != NULL)
        nn_simd()->dense_backward_weights(p->n, k, o8, p->x, p->dy, p->dparam[0], p->dparam[1]);
    if (p->dx != NULL)
        nn_simd()->dense_backward_data(p->n, k, o8, p->dy, p->param[0], p->dx);
    return BASE_OK;
}

static base_status dense_express(const struct nn_node *node, struct nn_ops *ops)
{
    struct nn_op *op;

    nn_ops_flatten(ops);
    op = nn_ops_add(ops, "Gemm");
    for (int i = 0; i < node->params; i++)
        nn_op_param(op, i);
    nn_op_whole(op, "transB", 1);
    return BASE_OK;
}

const struct nn_layer nn_layer_dense = {
    .name = "dense",
    .alias = "linear",
    .help = "fully connected layer; reads an image as a vector",
    .usage = "dense OUT [bias=on|off]",
    .examples =
        (const char *const[]){"input 3x4x5\ndense 7\nmse",
                              "input 9x3x2\nrelu\ndense 16 bias=off\ndense 3\nmse",
                              "input 5x1x1\nclasses 4\nflatten\ndense classes\nsoftmax", NULL},
    .config_size = sizeof(struct config),
    .bias = dense_bias_of,
    .parse = dense_parse,
    .describe = dense_describe,
    .forward = dense_forward,
    .backward = dense_backward,
    .express = dense_express,
    .takes_planar = true,
    .needs_x = true,
    .splits = true,
};
