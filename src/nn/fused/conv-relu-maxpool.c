/* SPDX-License-Identifier: MIT
 *
 * Convolution, ReLU and maxpool 2x2: nn/conv/pool.h.
 */
#include "nn/conv/pool.h"
#include "nn/fuse.h"

static base_status conv_relu_maxpool_forward(struct nn_pass *p)
{
    return nn_conv_pool_forward(p, NULL);
}

static base_status conv_relu_maxpool_backward(struct nn_pass *p)
{
    return nn_conv_pool_backward(p, NULL);
}

const struct nn_fused nn_fused_conv_relu_maxpool = {
    .layer =
        {
            .name = "conv+relu+maxpool",
            .help = "a convolution that is pooled while its outputs are in the caches",
            .examples = (const char *const[]){"input 3x6x8\nconv 10 3x3 pad=1\nrelu\nmaxpool 2\n"
                                              "dense 3\nmse",
                                              "input 9x6x6\nconv 10 1x1 bias=off\nrelu\nmaxpool 2\n"
                                              "dense 3\nmse",
                                              NULL},
            .open = nn_conv_pool_open,
            .close = nn_conv_pool_close,
            .forward = conv_relu_maxpool_forward,
            .backward = conv_relu_maxpool_backward,
            .takes_planar = true,
            .needs_x = true,
        },
    .fits = nn_conv_pool_fits,
};
