/* SPDX-License-Identifier: MIT
 *
 * 3x3 convolutions with stride 2 by Winograd's method, tiles of 4x4: nn/conv/simd/winograd4s2.c.
 */
#include "nn/conv/cost.h"
#include "nn/conv/own.h"
#include "nn/simd/simd.h"

static bool serves(const struct nn_conv_shape *s)
{
    return nn_ownconv_winograd_serves(s, 2);
}

static const struct nn_cost_rates rates[NN_LEVELS] = {
    [NN_LEVEL_portable] = {{105.2, 414, 1}, {110.6, 134, 22}},
    [NN_LEVEL_avx2] = {{26.3, 201, 130}, {30.8, 255, 181}},
    [NN_LEVEL_avx512] = {{26.3, 201, 130}, {30.8, 255, 181}},
};

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_winograd(shape, 4, 81));
}

static base_status open_conv(const struct nn_conv_shape *shape, size_t *scratch_bytes_p,
                             void **state_p)
{
    return nn_ownconv_open(nn_simd()->winograd4s2, shape, scratch_bytes_p, state_p);
}

static size_t prepared_floats(const struct nn_conv_shape *shape)
{
    return nn_simd()->winograd4s2->prepared_floats(shape);
}

static void prepare(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    nn_simd()->winograd4s2->prepare(shape, w, prepared);
}

static int uses(const struct nn_conv_shape *shape)
{
    return nn_ownconv_tiles(shape, 4);
}

extern const struct nn_conv nn_conv_winograd4s2;
const struct nn_conv nn_conv_winograd4s2 = {
    .name = "winograd4s2",
    .help = "Winograd in tiles of 4x4: 3x3, stride 2, padding 0 or 1",
    .share = 81.0 / 144,
    .serves = serves,
    .cost = cost,
    .open = open_conv,
    .close = nn_ownconv_close,
    .forward = nn_ownconv_forward,
    .backward = nn_ownconv_backward,
    .prepared_floats = prepared_floats,
    .prepare = prepare,
    .uses = uses,
    .answer = nn_ownconv_answer,
    .implementation = nn_ownconv_implementation,
};
