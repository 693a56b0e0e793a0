/* SPDX-License-Identifier: MIT
 *
 * The kernels of one CPU level as a table: `nn_simd_portable`, `nn_simd_avx2`, …
 */
#include "nn/simd/simd_private.h"

#define TABLE_(level) nn_simd_##level
#define TABLE(level) TABLE_(level)

extern const struct nn_simd TABLE(NN_SIMD_LEVEL);
const struct nn_simd TABLE(NN_SIMD_LEVEL) = {
    .width = sizeof(nn_widest) / sizeof(float),
    .fma = NN_LEVEL(fma),
    .dense_forward = NN_LEVEL(dense_forward),
    .dense_backward_data = NN_LEVEL(dense_backward_data),
    .dense_backward_weights = NN_LEVEL(dense_backward_weights),
    .bn_moments = NN_LEVEL(bn_moments),
    .bn_apply = NN_LEVEL(bn_apply),
    .bn_backward_sums = NN_LEVEL(bn_backward_sums),
    .bn_backward = NN_LEVEL(bn_backward),
    .relu = NN_LEVEL(relu),
    .relu_backward = NN_LEVEL(relu_backward),
    .add = NN_LEVEL(add),
    .scale = NN_LEVEL(scale),
    .square_sum = NN_LEVEL(square_sum),
    .dropout = NN_LEVEL(dropout),
    .maxpool = NN_LEVEL(maxpool),
    .maxpool_backward = NN_LEVEL(maxpool_backward),
    .avgpool = NN_LEVEL(avgpool),
    .avgpool_backward = NN_LEVEL(avgpool_backward),
    .convs = NN_LEVEL(conv_registry),
    .bn_relu = NN_LEVEL(bn_relu),
    .bn_relu_sums = NN_LEVEL(bn_relu_sums),
    .bn_relu_backward = NN_LEVEL(bn_relu_backward),
    .bn_relu_pool = NN_LEVEL(bn_relu_pool),
    .bn_relu_pool_sums = NN_LEVEL(bn_relu_pool_sums),
    .bn_relu_pool_backward = NN_LEVEL(bn_relu_pool_backward),
    .relu_pool = NN_LEVEL(relu_pool),
    .relu_pool_backward = NN_LEVEL(relu_pool_backward),
};
