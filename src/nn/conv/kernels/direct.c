/* SPDX-License-Identifier: MIT
 *
 * Convolutions of a planar input with few channels: nn/conv/simd/direct.c.
 */
#include "nn/conv/cost.h"
#include "nn/conv/own.h"
#include "nn/simd/simd.h"

enum { MAX_CHANNELS = 4 };

static bool serves(const struct nn_conv_shape *s)
{
    return s->in.planar && s->groups == 1 && s->in.c <= MAX_CHANNELS &&
           s->kernel[0] * s->kernel[1] * s->in.c <= NN_DIRECT_TAPS && !s->want_dx;
}

static const struct nn_cost_rates rates[NN_LEVELS] = {
    [NN_LEVEL_portable] = {{89.3, 294, 1}, {151.3, 1, 1}},
    [NN_LEVEL_avx2] = {{28.8, 57, 2}, {22.3, 99, 1}},
    [NN_LEVEL_avx512] = {{28.8, 57, 2}, {22.3, 99, 1}},
};

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_plain(shape));
}

static base_status open_conv(const struct nn_conv_shape *shape, size_t *scratch_bytes_p,
                             void **state_p)
{
    return nn_ownconv_open(nn_simd()->direct, shape, scratch_bytes_p, state_p);
}

static size_t prepared_floats(const struct nn_conv_shape *shape)
{
    return nn_simd()->direct->prepared_floats(shape);
}

static void prepare(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    nn_simd()->direct->prepare(shape, w, prepared);
}

static int uses(const struct nn_conv_shape *shape)
{
    return nn_ownconv_tiles(shape, 1);
}

extern const struct nn_conv nn_conv_direct;
const struct nn_conv nn_conv_direct = {
    .name = "direct",
    .help = "first layers with up to four channels: any small kernel and stride",
    .share = 1,
    .serves = serves,
    .cost = cost,
    .open = open_conv,
    .close = nn_ownconv_close,
    .forward = nn_ownconv_forward,
    .backward = nn_ownconv_backward,
    .forward_relu = nn_ownconv_forward_relu,
    .backward_relu = nn_ownconv_backward_relu,
    .prepared_floats = prepared_floats,
    .prepare = prepare,
    .uses = uses,
    .answer = nn_ownconv_answer,
    .implementation = nn_ownconv_implementation,
};
