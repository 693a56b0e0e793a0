/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of nn/simd, each of which is compiled once for every CPU level with
 * NN_SIMD_LEVEL set to the level's name: NN_LEVEL gives every function a name of its own there.
 * Functions that take or return vectors are inline: how a vector is passed differs by level.
 */
#ifndef NN_SIMD_PRIVATE_H
#define NN_SIMD_PRIVATE_H

#include "nn/shape.h"
#include "nn/simd/simd.h"

#define NN_JOIN_(level, name) nn_##level##_##name
#define NN_JOIN(level, name) NN_JOIN_(level, name)
#define NN_LEVEL(name) NN_JOIN(NN_SIMD_LEVEL, name)

#define NN_INLINE static inline __attribute__((always_inline))

typedef double nn_d8 __attribute__((vector_size(64)));

NN_INLINE nn_v8 nn_load(const float *from)
{
    return *(const nn_v8u *)from;
}

NN_INLINE void nn_store(float *to, nn_v8 value)
{
    *(nn_v8u *)to = value;
}

double NN_LEVEL(fma)(long rounds, int threads);

void NN_LEVEL(dense_forward)(int n, int k, int o8, const float *x, const float *w, const float *b,
                             float *y);
void NN_LEVEL(dense_backward_data)(int n, int k, int o8, const float *dy, const float *w,
                                   float *dx);
void NN_LEVEL(dense_backward_weights)(int n, int k, int o8, const float *x, const float *dy,
                                      float *dw, float *db);

void NN_LEVEL(bn_sum)(int n, int c8, int s, const float *x, float *sum);
void NN_LEVEL(bn_squares)(int n, int c8, int s, const float *x, const float *mean, float *sum);
void NN_LEVEL(bn_apply)(int n, int c8, int s, const float *x, const float *scale,
                        const float *shift, float *y);
void NN_LEVEL(bn_backward_sums)(int n, int c8, int s, const float *x, const float *mean,
                                const float *dy, float *sum_dy, float *sum_dyx);
void NN_LEVEL(bn_backward)(int n, int c8, int s, const float *x, const float *dy, const float *a,
                           const float *b, const float *c, float *dx);

void NN_LEVEL(relu)(size_t count, const float *x, float *y);
void NN_LEVEL(relu_backward)(size_t count, const float *y, const float *dy, float *dx);
void NN_LEVEL(add)(size_t count, const float *a, const float *b, float *sum);
void NN_LEVEL(scale)(size_t count, float factor, float *x);
double NN_LEVEL(square_sum)(size_t count, const float *x);
void NN_LEVEL(dropout)(int n, size_t floats, float rate, uint64_t seed, uint32_t layer,
                       uint32_t epoch, const uint32_t *ids, const float *x, float *y);

void NN_LEVEL(maxpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y,
                       uint8_t *argmax);
void NN_LEVEL(maxpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy,
                                const uint8_t *argmax, float *dx);
void NN_LEVEL(avgpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y);
void NN_LEVEL(avgpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy,
                                float *dx);

extern const struct nn_simd_conv NN_LEVEL(winograd4), NN_LEVEL(winograd2), NN_LEVEL(toeplitz2),
    NN_LEVEL(direct), NN_LEVEL(gemm1x1);

#endif
