/* SPDX-License-Identifier: MIT
 *
 * Kernels in plain vector C, compiled once for each CPU level (CMakeLists.txt) and chosen at run
 * time. The files beside this one are written with gcc's vector extensions on 8 floats and know
 * no intrinsics but one (dropout.c), so the portable level is the same source. Activations nChw8c:
 * (n,C8,S,8) with C8 = padded channels / 8 and S = H*W. Results do not depend on the number of
 * threads.
 */
#ifndef NN_SIMD_H
#define NN_SIMD_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu_level.h"

typedef float nn_v8 __attribute__((vector_size(32)));
typedef float nn_v8u __attribute__((vector_size(32), aligned(4), may_alias));

struct nn_pool_shape {
    int c8, h, w, ho, wo;             /* blocks of channels, input and output sizes */
    int kernel[2], stride[2], pad[2]; /* pad < kernel: every window holds a value */
};

/* The argmax of a window that no gradient goes back through. */
enum { NN_POOL_DEAD = 4 };

struct base_team;
struct nn_conv;

struct nn_simd {
    int width; /* floats of the vectors that multiply */

    /* `rounds` of register-only multiply-adds on each thread; the flops done. */
    double (*fma)(long rounds, int threads);

    /* Dense layers: x (n,K), w panels [O8][K][8], y (n,O8*8). b (O8*8) or NULL. */
    void (*dense_forward)(struct base_team *team /* or NULL: OpenMP's */, int n, int k, int o8,
                          const float *x, const float *w, const float *b, float *y);
    void (*dense_backward_data)(int n, int k, int o8, const float *dy, const float *w, float *dx);
    void (*dense_backward_weights)(int n, int k, int o8, const float *x, const float *dy, float *dw,
                                   float *db /* or NULL */);

    /* Batch-norm over (n,S) of each channel, in phases so that workers can sum between them. */
    /* sum = Σ x; squares = Σ (x - mean)², mean = sum / (n*S) */
    void (*bn_moments)(int n, int c8, int s, const float *x, float *sum, float *squares);
    /* y = x * scale + shift, per channel */
    void (*bn_apply)(int n, int c8, int s, const float *x, const float *scale, const float *shift,
                     float *y);
    /* sum_dy = Σ dy; sum_dyx = Σ dy * (x - mean) */
    void (*bn_backward_sums)(int n, int c8, int s, const float *x, const float *mean,
                             const float *dy, float *sum_dy, float *sum_dyx);
    /* dx = a * dy + b * x + c, per channel */
    void (*bn_backward)(int n, int c8, int s, const float *x, const float *dy, const float *a,
                        const float *b, const float *c, float *dx);

    void (*relu)(size_t count, const float *x, float *y);
    void (*relu_backward)(size_t count, const float *y, const float *dy, float *dx);
    void (*add)(size_t count, const float *a, const float *b, float *sum); /* may alias */
    void (*scale)(size_t count, float factor, float *x);                   /* in place */
    double (*square_sum)(size_t count, const float *x); /* in fixed chunks: any thread count */

    /* Dropout: element i of sample j lives when base_rng_unit(word i) >= rate, keyed by (seed,
     * layer, epoch, ids[j]); the living are multiplied by 1/(1-rate). y may be x. The backward
     * is the same call on gradients. floats: per sample. marks (n,floats) or NULL: NN_POOL_DEAD
     * is written where an element dies. */
    void (*dropout)(int n, size_t floats, float rate, uint64_t seed, uint32_t layer, uint32_t epoch,
                    const uint32_t *ids, const float *x, float *y, uint8_t *marks);

    /* argmax (n,C8,HO*WO,8): offset inside the window (row * kernel width + column; kernels up to
     * 15x15), padding never wins. */
    void (*maxpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y,
                    uint8_t *argmax);
    void (*maxpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy,
                             const uint8_t *argmax, float *dx);
    /* Average of the window, padding counted as zeros (PyTorch's count_include_pad=True). */
    void (*avgpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y);
    void (*avgpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy, float *dx);

    const struct nn_conv *const *convs; /* forms of convolution (nn/conv/conv.h) */

    /* Fused with batch-norm (scale, shift, mean, b, c per channel) and ReLU, as if one by one: a
     * NaN passes forward, and back goes nothing where y is not above 0. */
    void (*bn_relu)(int n, int c8, int s, const float *x, const float *scale, const float *shift,
                    float *y); /* y may be x */
    /* As bn_backward_sums and bn_backward of g = dy where x * scale + shift > 0, else 0:
     * dx = scale * g + b * x + c; dx may be dy. */
    void (*bn_relu_sums)(int n, int c8, int s, const float *x, const float *mean,
                         const float *scale, const float *shift, const float *dy, float *sum_dy,
                         float *sum_dyx);
    void (*bn_relu_backward)(int n, int c8, int s, const float *x, const float *dy,
                             const float *scale, const float *shift, const float *b, const float *c,
                             float *dx);
    /* And with maxpool 2x2: x (n,C8,H,W,8), H and W even; y, dy, argmax (n,C8,H/2*W/2,8). argmax:
     * 2 * row + column in the window, NN_POOL_DEAD where y is not above 0. */
    void (*bn_relu_pool)(int n, int c8, int h, int w, const float *x, const float *scale,
                         const float *shift, float *y, uint8_t *argmax);
    void (*bn_relu_pool_sums)(int n, int c8, int h, int w, const float *x, const float *mean,
                              const float *dy, const uint8_t *argmax, float *sum_dy,
                              float *sum_dyx);
    void (*bn_relu_pool_backward)(int n, int c8, int h, int w, const float *x, const float *dy,
                                  const uint8_t *argmax, const float *scale, const float *b,
                                  const float *c, float *dx);
    /* ReLU and maxpool 2x2 alone; planes = n * C8. Back goes scale * dy. */
    void (*relu_pool)(size_t planes, int h, int w, const float *x, float *y, uint8_t *argmax);
    void (*relu_pool_backward)(size_t planes, int h, int w, float scale, const float *dy,
                               const uint8_t *argmax, float *dx);
};

const struct nn_simd *nn_simd(void); /* of this process's level */
const struct nn_simd *nn_simd_of(enum base_cpu_level level);

#endif
