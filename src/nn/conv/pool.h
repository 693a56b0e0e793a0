/* SPDX-License-Identifier: MIT
 *
 * Convolution, ReLU, maxpool 2x2 and perhaps dropout as one group, a few samples at a time: what
 * the convolution writes is pooled while it is in the caches and never exists for the whole batch,
 * in neither direction. Keeps a byte an output: which of the four it was, or none. What dropout
 * kills counts as none, so the backward needs no random number.
 */
#ifndef NN_CONV_POOL_H
#define NN_CONV_POOL_H

#include "nn/layer.h"

/* Nodes of conv, relu, maxpool: the pool halves, and the convolution's outputs outweigh its weights
 * (gradients of weights are summed over the parts of a batch). */
bool nn_conv_pool_fits(const struct nn_node *nodes);

/* As struct nn_layer's open and close. */
base_status nn_conv_pool_open(const struct nn_node *node, struct nn_open *open, void **state_p);
void nn_conv_pool_close(void *state);

/* dropout: the group's fourth node, or NULL. */
base_status nn_conv_pool_forward(struct nn_pass *p, const struct nn_node *dropout);
base_status nn_conv_pool_backward(struct nn_pass *p, const struct nn_node *dropout);

#endif
