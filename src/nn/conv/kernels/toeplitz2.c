/* SPDX-License-Identifier: MIT
 *
 * 3x3 convolutions of 2x2 images with nine products a channel: nn/conv/simd/toeplitz2.c.
 */
#include "nn/conv/cost.h"
#include "nn/conv/own.h"
#include "nn/simd/simd.h"

static bool serves(const struct nn_conv_shape *s)
{
    return nn_ownconv_winograd_serves(s, 1) && s->pad[0] == 1 && s->pad[1] == 1 && s->in.h == 2 &&
           s->in.w == 2;
}

static const struct nn_cost_rates rates[NN_LEVELS] = {
    [NN_LEVEL_portable] = {{99.6, 56, 177}, {97.8, 1, 424}},
    [NN_LEVEL_avx2] = {{29.2, 3, 93}, {32.6, 1, 237}},
    [NN_LEVEL_avx512] = {{29.2, 3, 93}, {32.6, 1, 237}},
};

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_winograd(shape, 2, 9));
}

static base_status open_conv(const struct nn_conv_shape *shape, size_t *scratch_bytes_p,
                             void **state_p)
{
    return nn_ownconv_open(nn_simd()->toeplitz2, shape, scratch_bytes_p, state_p);
}

static size_t prepared_floats(const struct nn_conv_shape *shape)
{
    return nn_simd()->toeplitz2->prepared_floats(shape);
}

static void prepare(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    nn_simd()->toeplitz2->prepare(shape, w, prepared);
}

static int uses(const struct nn_conv_shape *shape)
{
    return nn_ownconv_tiles(shape, 2);
}

extern const struct nn_conv nn_conv_toeplitz2;
const struct nn_conv nn_conv_toeplitz2 = {
    .name = "toeplitz2",
    .help = "2x2 images, 3x3, padding 1: nine products, exact",
    .share = 9.0 / 36,
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
