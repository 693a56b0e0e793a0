/* SPDX-License-Identifier: MIT
 *
 * The candidate that serves every convolution: oneDNN's kernels, through nn/onednn.
 */
#include "nn/onednn/conv.h"

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    (void)level;
    return nn_conv_products(shape) / 40e9;
}

extern const struct nn_conv nn_conv_onednn;
const struct nn_conv nn_conv_onednn = {
    .name = "onednn",
    .help = "oneDNN's direct convolutions: any kernel, stride, padding and groups",
    .share = 1,
    .serves = nn_onednn_conv_serves,
    .cost = cost,
    .open = nn_onednn_conv_open,
    .close = nn_onednn_conv_close,
    .forward = nn_onednn_conv_forward,
    .backward = nn_onednn_conv_backward,
    .implementation = nn_onednn_conv_implementation,
};
