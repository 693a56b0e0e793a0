/* SPDX-License-Identifier: MIT
 *
 * What conv and the groups that begin with it share: the layer's line and its form at work.
 */
#ifndef NN_CONV_LAYER_H
#define NN_CONV_LAYER_H

#include "nn/conv/conv.h"
#include "nn/layer.h"

struct nn_conv_config {
    int out, kernel[2], stride[2], pad[2], groups;
    bool bias;
};

/* What a convolution of a model is known by, until another layer stands for it: that of a group, or
 * of a model that answers. */
extern const struct nn_layer nn_layer_conv;

/* The convolution's output; in a group, node->out is another's. */
struct nn_shape nn_conv_layer_out(const struct nn_node *node);

/* Fills in what the layer says of the shape; n_max, training and want_dx are the caller's. */
void nn_conv_layer_shape(const struct nn_node *node, struct nn_conv_shape *shape);

/* As struct nn_layer's open and close. The state is a struct nn_conv_work, whose scratch_bytes are
 * whole lines of memory. */
base_status nn_conv_layer_open(const struct nn_node *node, struct nn_open *open, void **state_p);
void nn_conv_layer_close(void *state);

#endif
