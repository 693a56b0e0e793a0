/* SPDX-License-Identifier: MIT
 *
 * The forward-only half of `direct` (direct_answer.c), which direct.c puts into its table; private
 * to nn/simd.
 */
#ifndef NN_CONV_SIMD_DIRECT_H
#define NN_CONV_SIMD_DIRECT_H

#include "nn/conv/simd/conv.h"
#include "nn/simd/simd_private.h"

size_t NN_LEVEL(direct_answer_scratch)(const struct nn_conv_shape *shape, int threads);
size_t NN_LEVEL(direct_prepared_floats)(const struct nn_conv_shape *shape);
void NN_LEVEL(direct_prepare)(const struct nn_conv_shape *shape, const float *w, float *prepared);
void NN_LEVEL(direct_answer)(const struct nn_conv_shape *shape, struct base_team *team, int n,
                             const float *x, const float *prepared, const float *b,
                             const struct nn_conv_tail *tail, float *y, float *scratch);

#endif
