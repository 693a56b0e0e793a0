/* SPDX-License-Identifier: MIT
 *
 * Convolutions by oneDNN, in the shape that struct nn_conv (nn/conv/conv.h) asks for. Serves every
 * convolution; the state belongs to one thread at a time.
 */
#ifndef NN_CONV_ONEDNN_CONV_H
#define NN_CONV_ONEDNN_CONV_H

#include "nn/conv/conv.h"

bool nn_onednn_conv_serves(const struct nn_conv_shape *shape);
base_status nn_onednn_conv_open(const struct nn_conv_shape *shape, size_t *scratch_bytes_p,
                                void **state_p);
void nn_onednn_conv_close(void *state);
base_status nn_onednn_conv_forward(void *state, int n, const float *x, const float *w,
                                   const float *b, float *y, void *scratch);
base_status nn_onednn_conv_backward(void *state, int n, const float *x, const float *dy,
                                    const float *w, float *dw, float *db, float *dx, void *scratch);
const char *nn_onednn_conv_implementation(const void *state);

#endif
