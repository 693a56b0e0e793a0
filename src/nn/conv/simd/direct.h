/* SPDX-License-Identifier: MIT
 *
 * The forward-only half of the form `direct`: direct_answer.c.
 */
#ifndef NN_CONV_SIMD_DIRECT_H
#define NN_CONV_SIMD_DIRECT_H

#include "nn/conv/form.h"

enum { NN_DIRECT_TAPS = 256 }; /* most taps times channels */

size_t NN_LEVEL(direct_answer_scratch)(const struct nn_conv_shape *shape, int threads);
size_t NN_LEVEL(direct_prepared_floats)(const struct nn_conv_shape *shape);
void NN_LEVEL(direct_prepare)(const struct nn_conv_shape *shape, const float *w, float *prepared);
base_status NN_LEVEL(direct_answer)(const struct nn_conv_work *work, struct base_team *team, int n,
                                    const float *x, const float *prepared, const float *b,
                                    const struct nn_conv_tail *tail, float *y, void *scratch);

#endif
