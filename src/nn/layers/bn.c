/* SPDX-License-Identifier: MIT
 *
 * Batch normalisation over (n,H,W) of each channel, as PyTorch's BatchNorm2d and (on vectors)
 * BatchNorm1d. All but the passes over the activations is in nn/batchnorm.c, which the fused
 * layers use too.
 */
#include "nn/batchnorm.h"
#include "nn/line.h"
#include "nn/ops.h"
#include "nn/simd/simd.h"

static base_status bn_parse(struct nn_line *line, void *config)
{
    base_status st = BASE_OK;
    struct nn_bn_config *c = config;

    *c = (struct nn_bn_config){.eps = 1e-5, .momentum = 0.1};
    TRY(nn_line_opt_real(line, "eps", 1e-12, 1.0, &c->eps));
    TRY(nn_line_opt_real(line, "momentum", 0.0, 1.0, &c->momentum));
out:
    return st;
}

static base_status bn_describe(struct nn_node *node)
{
    int c = node->in.c;

    if (node->in.flat && (node->in.h > 1 || node->in.w > 1))
        return nn_node_needs_image(node);
    node->out = node->in;
    nn_node_param(node, "weight", nn_tensor_vector(c, NN_START_ONE, 0));
    nn_node_param(node, "bias", nn_tensor_vector(c, NN_START_ZERO, 0));
    nn_node_stat(node, "running_mean", nn_tensor_vector(c, NN_START_ZERO, 0));
    nn_node_stat(node, "running_var", nn_tensor_vector(c, NN_START_ONE, 0));
    node->flops = 4.0 * (double)nn_shape_values(node->in);
    node->keep_fixed = nn_bn_kept_bytes(node);
    return BASE_OK;
}

static base_status bn_forward(struct nn_pass *p)
{
    int c8 = nn_pad8(p->node->in.c) / NN_BLOCK, s = p->node->in.h * p->node->in.w;
    struct nn_bn bn = nn_bn_forward(p);

    nn_simd()->bn_apply(p->n, c8, s, p->x, bn.scale, bn.shift, p->y);
    return BASE_OK;
}

static base_status bn_backward(struct nn_pass *p)
{
    int c8 = nn_pad8(p->node->in.c) / NN_BLOCK, s = p->node->in.h * p->node->in.w;
    struct nn_bn bn = nn_bn_backward(p);

    nn_simd()->bn_backward_sums(p->n, c8, s, p->x, bn.mean, p->dy, bn.sum_dy, bn.sum_dyx);
    nn_bn_finish(p, &bn);
    if (p->dx != NULL)
        nn_simd()->bn_backward(p->n, c8, s, p->x, p->dy, bn.scale, bn.b, bn.c, p->dx);
    return BASE_OK;
}

static base_status bn_express(const struct nn_node *node, struct nn_ops *ops)
{
    const struct nn_bn_config *c = node->config;
    struct nn_op *op;

    if (node->identity) /* nn/fold.h has folded it into the layer before */
        return BASE_OK;
    op = nn_ops_add(ops, "BatchNormalization");
    nn_op_param(op, 0);
    nn_op_param(op, 1);
    nn_op_stat(op, 0);
    nn_op_stat(op, 1);
    nn_op_real(op, "epsilon", c->eps);
    return BASE_OK;
}

const struct nn_layer nn_layer_bn = {
    .name = "bn",
    .alias = "batchnorm",
    .help = "batch normalisation with running statistics",
    .usage = "bn [eps=1e-5] [momentum=0.1]",
    .examples = (const char *const[]){"input 3x4x4\nbn\nrelu\ndense 3\nmse",
                                      "input 9x3x2\nconv 10 1x1\nbn eps=1e-3\ndense 3\nmse",
                                      "input 6x1x1\ndense 9\nbn\ndense 3\nmse", NULL},
    .config_size = sizeof(struct nn_bn_config),
    .parse = bn_parse,
    .describe = bn_describe,
    .open = nn_bn_open,
    .forward = bn_forward,
    .backward = bn_backward,
    .express = bn_express,
    .reduces = true,
    .needs_x = true,
    .in_place = true,
};
