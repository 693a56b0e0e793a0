/* SPDX-License-Identifier: MIT
 *
 * Convolutions by Winograd's F(2x2,3x3): nn/conv/simd/winograd2.c.
 */
#include "nn/conv/cost.h"
#include "nn/conv/own.h"
#include "nn/simd/simd.h"

static bool serves(const struct nn_conv_shape *s)
{
    return nn_ownconv_winograd_serves(s, 1);
}

static const struct nn_cost_rates rates[NN_LEVELS] = {
    [NN_LEVEL_portable] = {{103.9, 354, 5}, {104.5, 249, 280}},
    [NN_LEVEL_avx2] = {{24.7, 148, 150}, {28.3, 137, 180}},
    [NN_LEVEL_avx512] = {{24.7, 148, 150}, {28.3, 137, 180}},
};

static double cost(const struct nn_conv_shape *shape, enum nn_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_winograd(shape, 2, 16));
}

static base_status open_conv(const struct nn_conv_shape *shape, size_t *scratch_bytes_p,
                             void **state_p)
{
    return nn_ownconv_open(nn_simd()->winograd2, shape, scratch_bytes_p, state_p);
}

static size_t prepared_floats(const struct nn_conv_shape *shape)
{
    return nn_simd()->winograd2->prepared_floats(shape);
}

static void prepare(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    nn_simd()->winograd2->prepare(shape, w, prepared);
}

static int uses(const struct nn_conv_shape *shape)
{
    return nn_ownconv_tiles(shape, 2);
}

extern const struct nn_conv nn_conv_winograd2;
const struct nn_conv nn_conv_winograd2 = {
    .name = "winograd2",
    .help = "Winograd F(2x2,3x3): 3x3, stride 1, padding 0 or 1; more exact than winograd4",
    .share = 16.0 / 36,
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
