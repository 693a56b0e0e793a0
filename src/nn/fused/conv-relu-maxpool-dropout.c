/* SPDX-License-Identifier: MIT
 *
 * Convolution, ReLU, maxpool 2x2 and dropout: nn/conv/pool.h.
 */
#include "nn/conv/pool.h"
#include "nn/fuse.h"

enum { DROPOUT = 3 }; /* its place in the group */

static bool conv_relu_maxpool_dropout_fits(const struct nn_node *nodes)
{
    return nn_conv_pool_fits(nodes) && !nodes[DROPOUT].identity;
}

static base_status conv_relu_maxpool_dropout_forward(struct nn_pass *p)
{
    return nn_conv_pool_forward(p, &p->node[DROPOUT]);
}

static base_status conv_relu_maxpool_dropout_backward(struct nn_pass *p)
{
    return nn_conv_pool_backward(p, &p->node[DROPOUT]);
}

const struct nn_fused nn_fused_conv_relu_maxpool_dropout = {
    .layer =
        {
            .name = "conv+relu+maxpool+dropout",
            .help = "the same and dropout, with one set of random numbers for both ways",
            .examples = (const char *const[]){"input 3x6x8\nconv 10 3x3 pad=1\nrelu\nmaxpool 2\n"
                                              "dropout .25\ndense 3\nmse",
                                              "input 9x6x6\nconv 10 1x1\nrelu\nmaxpool 2\n"
                                              "dropout .5\ndense 3\nmse",
                                              NULL},
            .open = nn_conv_pool_open,
            .close = nn_conv_pool_close,
            .forward = conv_relu_maxpool_dropout_forward,
            .backward = conv_relu_maxpool_dropout_backward,
            .takes_planar = true,
            .needs_x = true,
        },
    .fits = conv_relu_maxpool_dropout_fits,
};
