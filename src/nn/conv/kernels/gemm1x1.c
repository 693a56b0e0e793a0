/* SPDX-License-Identifier: MIT
 *
 * 1x1 convolutions as matrix products: nn/conv/simd/gemm1x1.c.
 */
#include "nn/conv/cost.h"
#include "nn/conv/own.h"
#include "nn/simd/simd.h"

static bool serves(const struct nn_conv_shape *s)
{
    return s->kernel[0] == 1 && s->kernel[1] == 1 && s->pad[0] == 0 && s->pad[1] == 0 &&
           s->groups == 1 && !s->in.planar;
}

static const struct nn_cost_rates rates[NN_LEVELS] = {
    [NN_LEVEL_portable] = {{93.7, 85, 1}, {97, 983, 2457}},
    [NN_LEVEL_avx2] = {{28.6, 1, 2}, {36.8, 175, 4740}},
    [NN_LEVEL_avx512] = {{28.6, 1, 2}, {36.8, 175, 4740}},
};

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_plain(shape));
}

static base_status open_conv(const struct nn_conv_shape *shape, size_t *scratch_bytes_p,
                             void **state_p)
{
    return nn_ownconv_open(nn_simd()->gemm1x1, shape, scratch_bytes_p, state_p);
}

extern const struct nn_conv nn_conv_gemm1x1;
const struct nn_conv nn_conv_gemm1x1 = {
    .name = "gemm1x1",
    .help = "1x1 kernels as matrix products: any stride",
    .share = 1,
    .serves = serves,
    .cost = cost,
    .open = open_conv,
    .close = nn_ownconv_close,
    .forward = nn_ownconv_forward,
    .backward = nn_ownconv_backward,
    .implementation = nn_ownconv_implementation,
};
