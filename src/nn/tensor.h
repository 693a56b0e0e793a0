/* SPDX-License-Identifier: MIT
 *
 * Named tensors of a model: where each one lives in the flat buffers and how its memory order
 * relates to the canonical (PyTorch) order that files and outsiders see. One weight layout
 * everywhere; the CPU level changes kernels, never layouts.
 *
 *   weights of conv and dense, canonical (O,I,H,W), are panels of eight outputs:
 *   [O/8][k][8o] with O padded to 8, and k running over the inputs in one of these orders:
 *     NN_K_BLOCKED  (i/8, h, w, i%8), I padded to 8: OIhw8i8o, inputs that are nChw8c
 *     NN_K_HWI      (h, w, i): Ohwi8o, convolution of a planar input
 *     NN_K_CHW      (i, h, w): dense layer of a planar input
 *   A dense layer is a convolution whose kernel covers its whole input, so after `flatten` it
 *   reads nChw8c memory as it is. Grouped convolutions are NN_PLAIN (O,I/G,H,W). Vectors
 *   (bias, batch-norm) are NN_VECTOR, padded to 8 with zeros.
 */
#ifndef NN_TENSOR_H
#define NN_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nn_order { NN_VECTOR, NN_PLAIN, NN_K_BLOCKED, NN_K_HWI, NN_K_CHW };

enum nn_start { NN_START_UNIFORM, NN_START_ZERO, NN_START_ONE }; /* how it is initialised */

struct nn_tensor {
    char *name; /* "features.0.weight", as in a PyTorch state_dict */
    enum nn_order order;
    int rank;      /* canonical; a dense weight is rank 2 although dims has (O,C,H,W) */
    int dims[4];   /* (O,I,H,W) or (count,1,1,1) */
    size_t offset; /* of its first float in its flat buffer */
    size_t floats; /* in memory, padding included */
    size_t values; /* canonical */
    enum nn_start start;
    float bound; /* of NN_START_UNIFORM: values in [-bound, bound) */
    bool sparse; /* NN_PLAIN, rank 2: its gradient is zeros but for a row, at most, of every sample
                  */
};

/* A vector of `count` values, for describe. */
struct nn_tensor nn_tensor_vector(int count, enum nn_start start, float bound);

/* Sets floats and values from order and dims. */
void nn_tensor_size(struct nn_tensor *tensor);

/* Copies between the flat buffer (`memory` points at the tensor's first float) and canonical
 * order. Import writes zeros into the padding. */
void nn_tensor_export(const struct nn_tensor *tensor, const float *memory, float *canonical);
void nn_tensor_import(const struct nn_tensor *tensor, const float *canonical, float *memory);

/* Multiplies, in double, the weights of output o by factors[o], O of them; `from` and `to` are
 * memory of the tensor, or the same. */
void nn_tensor_scale(const struct nn_tensor *tensor, const double *factors, const float *from,
                     float *to);

/* PyTorch's default rules with counter-based numbers: element i of the `ordinal`-th parameter
 * tensor is (2u-1)*bound, u = base_rng_unit(word i of stream INIT, layer ordinal). */
void nn_tensor_start(const struct nn_tensor *tensor, uint64_t seed, uint32_t ordinal,
                     float *memory);

#endif
