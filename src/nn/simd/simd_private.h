/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of nn/simd and the forms of nn/conv, each of which is compiled once for every
 * CPU level with NN_SIMD_LEVEL set to the level's name: NN_LEVEL gives every function a name of its
 * own there. Functions that take or return vectors are inline: how a vector is passed differs by
 * level.
 */
#ifndef NN_SIMD_PRIVATE_H
#define NN_SIMD_PRIVATE_H

#include <string.h>

#include "nn/shape.h"
#include "nn/simd/simd.h"

#ifdef _OPENMP
#    include <omp.h>
#endif

#define NN_JOIN_(level, name) nn_##level##_##name
#define NN_JOIN(level, name) NN_JOIN_(level, name)
#define NN_LEVEL(name) NN_JOIN(NN_SIMD_LEVEL, name)

enum { NN_SMALL = 1 << 14 }; /* elements below which a second thread costs more than it brings */

#define NN_INLINE static inline __attribute__((always_inline))

NN_INLINE nn_v8 nn_load(const float *from)
{
    return *(const nn_v8u *)from;
}

NN_INLINE void nn_store(float *to, nn_v8 value)
{
    *(nn_v8u *)to = value;
}

/* The widest vector that a register of the level holds, for multiply-adds: two blocks of eight
 * channels with AVX-512. */
#if defined(__AVX512F__)
typedef float nn_widest __attribute__((vector_size(64)));
typedef float nn_widest_at __attribute__((vector_size(64), aligned(4), may_alias));
#else
typedef nn_v8 nn_widest;
typedef nn_v8u nn_widest_at;
#endif

double NN_LEVEL(fma)(long rounds, int threads);

/* The eight channels of a block in registers of this many, for what gcc 12 takes apart into single
 * floats when a vector is wider than a register: comparisons, and totals in double. */
#if defined(__AVX2__)
enum { NN_LANES = 8 };
#    define NN_LOW_HALF 0, 1, 2, 3
#    define NN_HIGH_HALF 4, 5, 6, 7
#else
enum { NN_LANES = 4 };
#    define NN_LOW_HALF 0, 1
#    define NN_HIGH_HALF 2, 3
#endif
typedef float nn_lanes __attribute__((vector_size(4 * NN_LANES)));
typedef float nn_lanes_at __attribute__((vector_size(4 * NN_LANES), aligned(4), may_alias));
typedef int32_t nn_masks __attribute__((vector_size(4 * NN_LANES)));
typedef uint8_t nn_bytes __attribute__((vector_size(NN_LANES)));
typedef uint8_t nn_bytes_at __attribute__((vector_size(NN_LANES), aligned(1), may_alias));

NN_INLINE nn_lanes nn_lanes_load(const float *from)
{
    return *(const nn_lanes_at *)from;
}

NN_INLINE void nn_lanes_store(float *to, nn_lanes value)
{
    *(nn_lanes_at *)to = value;
}

/* A byte for each lane, to and from memory; for eight lanes gcc 12 would convert one by one. */
#if defined(__AVX2__)
typedef uint8_t nn_b32 __attribute__((vector_size(32)));
typedef uint64_t nn_u4 __attribute__((vector_size(32)));

NN_INLINE nn_masks nn_bytes_load(const uint8_t *from)
{
    uint64_t eight;
    nn_b32 copies;

    memcpy(&eight, from, sizeof eight);
    copies = (nn_b32)((nn_u4){0} + eight); /* so that no byte has to change its half */
    return (nn_masks)__builtin_shufflevector(copies, copies, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3,
                                             3, 3, 3, 20, 20, 20, 20, 21, 21, 21, 21, 22, 22, 22,
                                             22, 23, 23, 23, 23) &
           255;
}

NN_INLINE void nn_bytes_store(uint8_t *to, nn_masks value)
{
    const nn_b32 bytes = (nn_b32)value;

    *(nn_bytes_at *)to = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 16, 20, 24, 28);
}
#else
NN_INLINE nn_masks nn_bytes_load(const uint8_t *from)
{
    return __builtin_convertvector(*(const nn_bytes_at *)from, nn_masks);
}

NN_INLINE void nn_bytes_store(uint8_t *to, nn_masks value)
{
    *(nn_bytes_at *)to = __builtin_convertvector(value, nn_bytes);
}
#endif

/* The number of this thread in its team. */
NN_INLINE int nn_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

void NN_LEVEL(dense_forward)(struct base_team *team, int n, int k, int o8, const float *x,
                             const float *w, const float *b, float *y);
void NN_LEVEL(dense_backward_data)(int n, int k, int o8, const float *dy, const float *w,
                                   float *dx);
void NN_LEVEL(dense_backward_weights)(int n, int k, int o8, const float *x, const float *dy,
                                      float *dw, float *db);

void NN_LEVEL(bn_moments)(int n, int c8, int s, const float *x, float *sum, float *squares);
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
                       uint32_t epoch, const uint32_t *ids, const float *x, float *y,
                       uint8_t *marks);

void NN_LEVEL(maxpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y,
                       uint8_t *argmax);
void NN_LEVEL(maxpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy,
                                const uint8_t *argmax, float *dx);
void NN_LEVEL(avgpool)(int n, const struct nn_pool_shape *shape, const float *x, float *y);
void NN_LEVEL(avgpool_backward)(int n, const struct nn_pool_shape *shape, const float *dy,
                                float *dx);

extern const struct nn_conv *const NN_LEVEL(conv_registry)[]; /* cmake/registry.cmake */

void NN_LEVEL(bn_relu)(int n, int c8, int s, const float *x, const float *scale, const float *shift,
                       float *y);
void NN_LEVEL(bn_relu_sums)(int n, int c8, int s, const float *x, const float *mean,
                            const float *scale, const float *shift, const float *dy, float *sum_dy,
                            float *sum_dyx);
void NN_LEVEL(bn_relu_backward)(int n, int c8, int s, const float *x, const float *dy,
                                const float *scale, const float *shift, const float *b,
                                const float *c, float *dx);
void NN_LEVEL(bn_relu_pool)(int n, int c8, int h, int w, const float *x, const float *scale,
                            const float *shift, float *y, uint8_t *argmax);
void NN_LEVEL(bn_relu_pool_sums)(int n, int c8, int h, int w, const float *x, const float *mean,
                                 const float *dy, const uint8_t *argmax, float *sum_dy,
                                 float *sum_dyx);
void NN_LEVEL(bn_relu_pool_backward)(int n, int c8, int h, int w, const float *x, const float *dy,
                                     const uint8_t *argmax, const float *scale, const float *b,
                                     const float *c, float *dx);
void NN_LEVEL(relu_pool)(size_t planes, int h, int w, const float *x, float *y, uint8_t *argmax);
void NN_LEVEL(relu_pool_backward)(size_t planes, int h, int w, float scale, const float *dy,
                                  const uint8_t *argmax, float *dx);

#endif
