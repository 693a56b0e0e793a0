/* SPDX-License-Identifier: MIT
 *
 * Convolutions of nn/simd at one CPU level, as the candidates of nn/kernels use them
 * (nn/ownconv.h). They keep no state between calls: everything lives in the scratch, which is
 * laid out from shape and threads each time. `threads` is how many run; results do not depend on
 * it.
 */
#ifndef NN_SIMD_CONV_H
#define NN_SIMD_CONV_H

#include "nn/conv.h"

enum { NN_DIRECT_TAPS = 256 }; /* most taps times channels of `direct` */

struct nn_simd_conv {
    /* Bytes of scratch for up to shape->n_max samples. */
    size_t (*scratch)(const struct nn_conv_shape *shape, int threads);
    /* y (n,O,HO,WO) = x (n,I,H,W) * w + b; b may be NULL. */
    void (*forward)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                    const float *w, const float *b, float *y, float *scratch);
    /* dw, db (or NULL), dx (or NULL) from x, w and dy. */
    void (*backward)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                     const float *dy, const float *w, float *dw, float *db, float *dx,
                     float *scratch);
    /* With a ReLU behind it, as in nn/conv.h, or NULL. */
    void (*forward_relu)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                         const float *w, const float *b, float *y, float *scratch);
    void (*backward_relu)(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                          const float *y, const float *dy, float *dw, float *db, float *scratch);
};

#endif
