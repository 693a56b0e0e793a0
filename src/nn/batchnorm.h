/* SPDX-License-Identifier: MIT
 *
 * What `bn` and the fused layers that begin with it share: the statistics of a batch, and what
 * becomes of the sums of a backward. Their kernels run over the activations in between. The
 * layer's config is a nn_bn_config, its keep_fixed bytes are nn_bn_kept_bytes.
 */
#ifndef NN_BATCHNORM_H
#define NN_BATCHNORM_H

#include "nn/layer.h"

struct nn_bn_config {
    double eps, momentum;
};

/* Vectors of (C), C = padded channels, in the layer's kept and scratch memory. */
struct nn_bn {
    const float *mean;
    float *scale, *shift;    /* y = x * scale + shift */
    float *sum_dy, *sum_dyx; /* Σ dy and Σ dy * (x - mean): the backward's kernel fills them */
    float *b, *c;            /* dx = scale * dy + b * x + c */
};

size_t nn_bn_kept_bytes(const struct nn_node *node);
/* nn_layer.open: asks for the scratch memory, has no state. */
base_status nn_bn_open(const struct nn_node *node, struct nn_open *open, void **state_p);

/* Statistics of the batch (of all workers; moves the running ones) in training, else the running
 * ones: fills scale and shift. */
struct nn_bn nn_bn_forward(const struct nn_pass *pass);

/* Before the kernel that sums: mean, scale and shift are those of the forward, to the bit. */
struct nn_bn nn_bn_backward(const struct nn_pass *pass);
/* After it: gradients of weight and bias; where dx is wanted, b and c from the sums of all
 * workers. */
void nn_bn_finish(const struct nn_pass *pass, const struct nn_bn *bn);

#endif
