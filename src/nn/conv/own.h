/* SPDX-License-Identifier: MIT
 *
 * Candidates of nn/conv/kernels whose kernels are ours (nn/conv/simd/conv.h): what struct nn_conv
 * asks for beyond the kernels themselves. A candidate's file adds a name and says what it serves.
 */
#ifndef NN_CONV_OWN_H
#define NN_CONV_OWN_H

#include "nn/conv/simd/conv.h"

base_status nn_ownconv_open(const struct nn_simd_conv *kernels, const struct nn_conv_shape *shape,
                            size_t *scratch_bytes_p, void **state_p);
void nn_ownconv_close(void *state);
base_status nn_ownconv_forward(void *state, int n, const float *x, const float *w, const float *b,
                               float *y, void *scratch);
base_status nn_ownconv_backward(void *state, int n, const float *x, const float *dy, const float *w,
                                float *dw, float *db, float *dx, void *scratch);
base_status nn_ownconv_forward_relu(void *state, int n, const float *x, const float *w,
                                    const float *b, float *y, void *scratch);
base_status nn_ownconv_backward_relu(void *state, int n, const float *x, const float *y,
                                     const float *dy, float *dw, float *db, void *scratch);
base_status nn_ownconv_answer(void *state, struct base_team *team, int n, const float *x,
                              const float *prepared, const float *b,
                              const struct nn_conv_tail *tail, float *y, void *scratch);
const char *nn_ownconv_implementation(const void *state);

/* 3x3, that stride, padding 0 or 1, one group, blocked input: what a Winograd form computes. */
bool nn_ownconv_winograd_serves(const struct nn_conv_shape *shape, int stride);

/* Tiles of m x m outputs that cover an image. */
int nn_ownconv_tiles(const struct nn_conv_shape *shape, int m);

#endif
