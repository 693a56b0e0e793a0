/* SPDX-License-Identifier: MIT
 *
 * The candidate that serves every convolution: oneDNN's kernels, through nn/conv/onednn.
 */
#include "nn/conv/cost.h"
#include "nn/conv/onednn/conv.h"

/* oneDNN has kernels of their own for these. */
enum kind { PLANAR, ONE, OTHER, KINDS };

static const struct nn_cost_rates rates[NN_LEVELS][KINDS] = {
    [NN_LEVEL_portable] = {[PLANAR] = {{36.6, 949, 1491}, {80.2, 1257, 1}},
                           [ONE] = {{62.3, 94, 599}, {71.7, 673, 166}},
                           [OTHER] = {{48.5, 503, 1}, {75.5, 2491, 611}}},
    [NN_LEVEL_avx2] = {[PLANAR] = {{18.2, 79, 7}, {24.1, 234, 1}},
                       [ONE] = {{20.9, 93, 1}, {23.2, 120, 1}},
                       [OTHER] = {{22.6, 1, 1}, {25.5, 1, 322}}},
    [NN_LEVEL_avx512] = {[PLANAR] = {{18.2, 79, 7}, {24.1, 234, 1}},
                         [ONE] = {{20.9, 93, 1}, {23.2, 120, 1}},
                         [OTHER] = {{22.6, 1, 1}, {25.5, 1, 322}}},
};

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    const enum kind kind = shape->in.planar                                 ? PLANAR
                           : shape->kernel[0] == 1 && shape->kernel[1] == 1 ? ONE
                                                                            : OTHER;
    const double blocks = nn_pad8(shape->out.c) / (double)NN_BLOCK;
    struct nn_cost forward = nn_cost_plain(shape);

    forward.product *= 1 + 0.5 / shape->out.w;      /* to begin a row takes half a pixel's time */
    forward.product *= 1 + 1.0 / (blocks * blocks); /* few channels leave multipliers idle */
    return nn_cost_seconds(shape, &rates[level][kind], forward);
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
