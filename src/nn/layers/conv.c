/* SPDX-License-Identifier: MIT
 *
 * Convolution: describes itself and hands the work to a form (nn/conv/conv.h). As the first layer
 * on fewer than eight channels it reads the planar input; with more, blocks waste nothing and are
 * faster. Grouped convolutions always read blocks.
 */
#include "nn/conv/layer.h"

#include <math.h>

#include "nn/line.h"
#include "nn/ops.h"

enum { MAX_CHANNELS = 1 << 20, MAX_KERNEL = 255 };

static base_status conv_parse(struct nn_line *line, void *config)
{
    base_status st = BASE_OK;
    struct nn_conv_config *c = config;

    *c = (struct nn_conv_config){.stride = {1, 1}, .groups = 1, .bias = true};
    TRY(nn_line_int(line, "OUT", 1, MAX_CHANNELS, &c->out));
    TRY(nn_line_pair(line, "kernel", 1, MAX_KERNEL, c->kernel));
    TRY(nn_line_opt_pair(line, "stride", 1, MAX_KERNEL, c->stride));
    TRY(nn_line_opt_pair(line, "pad", 0, MAX_KERNEL, c->pad));
    TRY(nn_line_opt_int(line, "groups", 1, MAX_CHANNELS, &c->groups));
    TRY(nn_line_opt_flag(line, "bias", &c->bias));
out:
    return st;
}

static bool *conv_bias(void *config)
{
    return &((struct nn_conv_config *)config)->bias;
}

static base_status conv_describe(struct nn_node *node)
{
    const struct nn_conv_config *c = node->config;
    struct nn_shape in = node->in;
    int h = in.h + 2 * c->pad[0], w = in.w + 2 * c->pad[1];
    int inputs = in.c / c->groups;
    double fan_in = (double)inputs * c->kernel[0] * c->kernel[1];
    float bound = (float)(1.0 / sqrt(fan_in)); /* PyTorch: kaiming_uniform with a = sqrt(5) */

    if (nn_node_needs_image(node) != BASE_OK)
        return BASE_ERR_MODEL;
    if (c->kernel[0] > h || c->kernel[1] > w)
        return base_fail(BASE_ERR_MODEL, "conv: a kernel of %dx%d does not fit an image of %dx%d",
                         c->kernel[0], c->kernel[1], h, w);
    if (in.c % c->groups != 0 || c->out % c->groups != 0)
        return base_fail(BASE_ERR_MODEL, "conv: groups=%d must divide %d inputs and %d outputs",
                         c->groups, in.c, c->out);
    if (c->groups > 1 || in.c >= NN_BLOCK)
        node->in.planar = in.planar = false;
    node->out = nn_conv_layer_out(node);
    nn_node_param(node, "weight",
                  (struct nn_tensor){
                      .order = c->groups > 1 ? NN_PLAIN
                               : in.planar   ? NN_K_HWI
                                             : NN_K_BLOCKED,
                      .rank = 4,
                      .dims = {c->out, inputs, c->kernel[0], c->kernel[1]},
                      .bound = bound,
                  });
    if (c->bias)
        nn_node_param(node, "bias", nn_tensor_vector(c->out, NN_START_UNIFORM, bound));
    node->flops = 2.0 * fan_in * (double)nn_shape_values(node->out);
    return BASE_OK;
}

static base_status conv_forward(struct nn_pass *p)
{
    const struct nn_conv_work *work = p->state;

    return work->conv->forward(work, p->n, p->x, p->param[0], p->param[1], p->y, p->scratch);
}

static base_status conv_backward(struct nn_pass *p)
{
    const struct nn_conv_work *work = p->state;

    return work->conv->backward(work, p->n, p->x, p->dy, p->param[0], p->dparam[0], p->dparam[1],
                                p->dx, p->scratch);
}

static base_status conv_express(const struct nn_node *node, struct nn_ops *ops)
{
    const struct nn_conv_config *c = node->config;
    struct nn_op *op = nn_ops_add(ops, "Conv");

    for (int i = 0; i < node->params; i++)
        nn_op_param(op, i);
    nn_op_pair(op, "kernel_shape", c->kernel);
    nn_op_pair(op, "strides", c->stride);
    nn_op_pads(op, c->pad);
    nn_op_whole(op, "group", c->groups);
    return BASE_OK;
}

const struct nn_layer nn_layer_conv = {
    .name = "conv",
    .help = "convolution; weights start as in PyTorch",
    .usage = "conv OUT KHxKW [stride=S] [pad=P] [groups=G] [bias=on|off]",
    .examples =
        (const char *const[]){"input 3x6x5\nconv 9 3x3 pad=1\nflatten\ndense 3\nmse",
                              "input 9x6x6\nconv 10 3x3\nflatten\ndense 3\nmse",
                              "input 8x7x6\nconv 16 1x1 stride=2 bias=off\nflatten\ndense 3\nmse",
                              "input 12x6x6\nconv 8 3x3 pad=1 groups=4\nflatten\ndense 3\nmse",
                              "input 16x9x9\nconv 8 5x5 stride=2 pad=2\nflatten\ndense 3\nmse",
                              "input 8x5x7\nconv 8 3x1 pad=1x0\nflatten\ndense 3\nmse", NULL},
    .config_size = sizeof(struct nn_conv_config),
    .bias = conv_bias,
    .parse = conv_parse,
    .describe = conv_describe,
    .open = nn_conv_layer_open,
    .close = nn_conv_layer_close,
    .forward = conv_forward,
    .backward = conv_backward,
    .express = conv_express,
    .takes_planar = true,
    .needs_x = true,
    .splits = true,
};
