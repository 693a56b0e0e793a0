/* SPDX-License-Identifier: MIT
 *
 * What maxpool and avgpool share: their line and their shapes.
 */
#ifndef NN_POOL_H
#define NN_POOL_H

#include "nn/layer.h"
#include "nn/ops.h"
#include "nn/simd/simd.h"

enum { NN_MAX_POOL = 15 }; /* window size; maxpool keeps a byte for the place inside it */

struct nn_pool_config {
    int kernel[2], stride[2], pad[2];
};

base_status nn_pool_parse(struct nn_line *line, void *config);
base_status nn_pool_describe(struct nn_node *node); /* sets out; the rest is the layer's */
/* A window of 2x2 with nothing between windows and nothing left over: H and W become half. */
bool nn_pool_halves(const struct nn_node *node);
struct nn_pool_shape nn_pool_shape(const struct nn_node *node);
void nn_pool_express(const struct nn_node *node, struct nn_op *op); /* the attributes of both */

#endif
