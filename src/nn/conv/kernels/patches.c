/* SPDX-License-Identifier: MIT
 *
 * Convolutions as one matrix product over patches of the image, for models that only answer:
 * nn/conv/simd/patches.c.
 */
#include "nn/conv/own.h"
#include "nn/simd/simd.h"

static bool serves(const struct nn_conv_shape *s)
{
    return s->prepared && s->groups == 1 && !s->in.planar;
}

static base_status open_conv(const struct nn_conv_shape *shape, size_t *scratch_bytes_p,
                             void **state_p)
{
    return nn_ownconv_open(nn_simd()->patches, shape, scratch_bytes_p, state_p);
}

static size_t prepared_floats(const struct nn_conv_shape *shape)
{
    return nn_simd()->patches->prepared_floats(shape);
}

static void prepare(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    nn_simd()->patches->prepare(shape, w, prepared);
}

static int uses(const struct nn_conv_shape *shape)
{
    return nn_ownconv_tiles(shape, 1);
}

extern const struct nn_conv nn_conv_patches;
const struct nn_conv nn_conv_patches = {
    .name = "patches",
    .help = "answers only: any kernel and stride, weights read once; for small batches",
    .share = 1,
    .serves = serves,
    .open = open_conv,
    .close = nn_ownconv_close,
    .prepared_floats = prepared_floats,
    .prepare = prepare,
    .uses = uses,
    .answer = nn_ownconv_answer,
    .implementation = nn_ownconv_implementation,
};
