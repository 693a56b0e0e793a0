/* SPDX-License-Identifier: MIT
 *
 * What conv and the groups that begin with it share: the layer's line and its candidate.
 */
#ifndef NN_CONV_LAYER_H
#define NN_CONV_LAYER_H

#include "nn/conv/conv.h"
#include "nn/layer.h"

struct nn_conv_config {
    int out, kernel[2], stride[2], pad[2], groups;
    bool bias;
};

/* The state of such a layer. */
struct nn_conv_layer {
    const struct nn_conv *conv;
    void *state;
    size_t scratch_bytes; /* of the candidate; whole lines of memory */
};

/* The convolution's output; in a group, node->out is another's. */
struct nn_shape nn_conv_layer_out(const struct nn_node *node);

/* As struct nn_layer's convolution, open and close. */
void nn_conv_layer_shape(const struct nn_node *node, struct nn_conv_shape *shape);
base_status nn_conv_layer_open(const struct nn_node *node, struct nn_open *open, void **state_p);
void nn_conv_layer_close(void *state);

#endif
