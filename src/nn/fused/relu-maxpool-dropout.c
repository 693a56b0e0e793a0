/* SPDX-License-Identifier: MIT
 *
 * ReLU, maxpool 2x2 and dropout. Keeps a byte an output: which of the four it was, or none. What
 * dropout kills counts as none, so the backward needs no random number.
 */
#include "nn/dropout.h"
#include "nn/fuse.h"
#include "nn/pool.h"

enum { POOL = 1, DROPOUT = 2 }; /* places in the group */

static bool fits(const struct nn_node *nodes)
{
    return nn_pool_halves(&nodes[POOL]) && !nodes[DROPOUT].identity;
}

static size_t planes(const struct nn_pass *p)
{
    return (size_t)p->n * (size_t)(nn_pad8(p->node->in.c) / NN_BLOCK);
}

static base_status forward(struct nn_pass *p)
{
    nn_simd()->relu_pool(planes(p), p->node->in.h, p->node->in.w, p->x, p->y, p->keep);
    if (p->training)
        nn_dropout(p, &p->node[DROPOUT], p->y, p->y, p->keep);
    return BASE_OK;
}

static base_status backward(struct nn_pass *p)
{
    nn_simd()->relu_pool_backward(planes(p), p->node->in.h, p->node->in.w,
                                  nn_dropout_factor(&p->node[DROPOUT]), p->dy, p->keep, p->dx);
    return BASE_OK;
}

const struct nn_fused nn_fused_relu_maxpool_dropout = {
    .layer =
        {
            .name = "relu+maxpool+dropout",
            .help = "ReLU, maxpool 2x2 and dropout; one set of random numbers for both ways",
            .examples = (const char *const[]){"input 3x4x6\nrelu\nmaxpool 2\ndropout .25\n"
                                              "dense 3\nmse",
                                              "input 9x5x5\nconv 10 2x2\nrelu\nmaxpool 2\n"
                                              "dropout .5\ndense 3\nmse",
                                              NULL},
            .forward = forward,
            .backward = backward,
        },
    .fits = fits,
};
