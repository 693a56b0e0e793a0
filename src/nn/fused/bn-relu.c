/* SPDX-License-Identifier: MIT
 *
 * Batch-norm and ReLU. The backward finds out from x again where y is above 0.
 */
#include "nn/batchnorm.h"
#include "nn/fuse.h"
#include "nn/simd/simd.h"

static base_status bn_relu_forward(struct nn_pass *p)
{
    int c8 = nn_pad8(p->node->in.c) / NN_BLOCK, s = p->node->in.h * p->node->in.w;
    struct nn_bn bn = nn_bn_forward(p);

    nn_simd()->bn_relu(p->n, c8, s, p->x, bn.scale, bn.shift, p->y);
    return BASE_OK;
}

static base_status bn_relu_backward(struct nn_pass *p)
{
    int c8 = nn_pad8(p->node->in.c) / NN_BLOCK, s = p->node->in.h * p->node->in.w;
    struct nn_bn bn = nn_bn_backward(p);

    nn_simd()->bn_relu_sums(p->n, c8, s, p->x, bn.mean, bn.scale, bn.shift, p->dy, bn.sum_dy,
                            bn.sum_dyx);
    nn_bn_finish(p, &bn);
    if (p->dx != NULL)
        nn_simd()->bn_relu_backward(p->n, c8, s, p->x, p->dy, bn.scale, bn.shift, bn.b, bn.c,
                                    p->dx);
    return BASE_OK;
}

const struct nn_fused nn_fused_bn_relu = {
    .layer =
        {
            .name = "bn+relu",
            .help = "batch-norm and ReLU in one pass",
            .examples = (const char *const[]){"input 3x4x4\nbn\nrelu\ndense 3\nmse",
                                              "input 9x3x2\nconv 10 1x1\nbn eps=1e-3\nrelu\n"
                                              "dense 3\nmse",
                                              "input 6x1x1\ndense 9\nbn\nrelu\ndense 3\nmse", NULL},
            .open = nn_bn_open,
            .forward = bn_relu_forward,
            .backward = bn_relu_backward,
            .reduces = true,
            .needs_x = true,
            .in_place = true,
        },
};
