/* SPDX-License-Identifier: MIT
 *
 * The candidate that serves every convolution: oneDNN's kernels, through nn/onednn.
 */
#include "nn/cost.h"
#include "nn/onednn/conv.h"

/* oneDNN has kernels of their own for these. */
enum kind { PLANAR, ONE, OTHER, KINDS };

static const struct nn_cost_rates rates[NN_LEVELS][KINDS] = {
    [NN_LEVEL_portable] = {[PLANAR] = {{18.7, 1135, 1}, {82.0, 1679, 1}},
                           [ONE] = {{62.7, 98, 592}, {71.7, 713, 158}},
                           [OTHER] = {{48.3, 1256, 1}, {74.4, 2833, 660}}},
    [NN_LEVEL_avx2] = {[PLANAR] = {{21.0, 55, 1}, {38.1, 234, 1}},
                       [ONE] = {{19.3, 154, 1}, {23.2, 128, 1}},
                       [OTHER] = {{22.3, 118, 23}, {22.4, 279, 259}}},
};

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    const enum kind kind = shape->in.planar                                 ? PLANAR
                           : shape->kernel[0] == 1 && shape->kernel[1] == 1 ? ONE
                                                                            : OTHER;
    struct nn_cost forward = nn_cost_plain(shape);

    forward.product *= 1 + 0.5 / shape->out.w; /* to begin a row takes as long as half a pixel */
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
