/* SPDX-License-Identifier: MIT
 *
 * Batch-norm, ReLU and maxpool 2x2. Keeps a byte an output: which of the four it was, or none.
 */
#include "nn/batchnorm.h"
#include "nn/fuse.h"
#include "nn/pool.h"

static bool bn_relu_maxpool_fits(const struct nn_node *nodes)
{
    return nn_pool_halves(&nodes[2]);
}

static uint8_t *bn_relu_maxpool_argmax_of(const struct nn_pass *p)
{
    return (uint8_t *)p->keep + nn_bn_kept_bytes(p->node);
}

static base_status bn_relu_maxpool_forward(struct nn_pass *p)
{
    struct nn_shape in = p->node->in;
    struct nn_bn bn = nn_bn_forward(p);

    nn_simd()->bn_relu_pool(p->n, nn_pad8(in.c) / NN_BLOCK, in.h, in.w, p->x, bn.scale, bn.shift,
                            p->y, bn_relu_maxpool_argmax_of(p));
    return BASE_OK;
}

static base_status bn_relu_maxpool_backward(struct nn_pass *p)
{
    struct nn_shape in = p->node->in;
    struct nn_bn bn = nn_bn_backward(p);
    int c8 = nn_pad8(in.c) / NN_BLOCK;

    nn_simd()->bn_relu_pool_sums(p->n, c8, in.h, in.w, p->x, bn.mean, p->dy,
                                 bn_relu_maxpool_argmax_of(p), bn.sum_dy, bn.sum_dyx);
    nn_bn_finish(p, &bn);
    if (p->dx != NULL)
        nn_simd()->bn_relu_pool_backward(p->n, c8, in.h, in.w, p->x, p->dy,
                                         bn_relu_maxpool_argmax_of(p), bn.scale, bn.b, bn.c, p->dx);
    return BASE_OK;
}

const struct nn_fused nn_fused_bn_relu_maxpool = {
    .layer =
        {
            .name = "bn+relu+maxpool",
            .help = "batch-norm, ReLU and maxpool 2x2 in one pass",
            .examples = (const char *const[]){"input 3x4x4\nbn\nrelu\nmaxpool 2\ndense 3\nmse",
                                              "input 9x6x4\nconv 10 1x1\nbn eps=1e-3\nrelu\n"
                                              "maxpool 2\ndense 3\nmse",
                                              NULL},
            .open = nn_bn_open,
            .forward = bn_relu_maxpool_forward,
            .backward = bn_relu_maxpool_backward,
            .reduces = true,
            .needs_x = true,
        },
    .fits = bn_relu_maxpool_fits,
};
