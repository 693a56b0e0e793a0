/* SPDX-License-Identifier: MIT
 *
 * ReLU and maxpool 2x2. Keeps a byte an output and nothing else: which of the four it was, or
 * none.
 */
#include "nn/fuse.h"
#include "nn/pool.h"

static bool relu_maxpool_fits(const struct nn_node *nodes)
{
    return nn_pool_halves(&nodes[1]);
}

static size_t relu_maxpool_planes(const struct nn_pass *p)
{
    return (size_t)p->n * (size_t)(nn_pad8(p->node->in.c) / NN_BLOCK);
}

static base_status relu_maxpool_forward(struct nn_pass *p)
{
    nn_simd()->relu_pool(relu_maxpool_planes(p), p->node->in.h, p->node->in.w, p->x, p->y, p->keep);
    return BASE_OK;
}

static base_status relu_maxpool_backward(struct nn_pass *p)
{
    nn_simd()->relu_pool_backward(relu_maxpool_planes(p), p->node->in.h, p->node->in.w, 1, p->dy,
                                  p->keep, p->dx);
    return BASE_OK;
}

const struct nn_fused nn_fused_relu_maxpool = {
    .layer =
        {
            .name = "relu+maxpool",
            .help = "ReLU and maxpool 2x2 in one pass",
            .examples = (const char *const[]){"input 3x4x6\nrelu\nmaxpool 2\ndense 3\nmse",
                                              "input 9x5x5\nconv 10 2x2\nrelu\nmaxpool 2\n"
                                              "dense 3\nmse",
                                              NULL},
            .forward = relu_maxpool_forward,
            .backward = relu_maxpool_backward,
        },
    .fits = relu_maxpool_fits,
};
