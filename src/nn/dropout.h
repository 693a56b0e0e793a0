/* SPDX-License-Identifier: MIT
 *
 * What dropout and the groups that end with it share.
 */
#ifndef NN_DROPOUT_H
#define NN_DROPOUT_H

#include "nn/layer.h"

struct nn_dropout_config {
    double rate;
};

/* 1 / (1 - rate): what the living are multiplied by. */
float nn_dropout_factor(const struct nn_node *node);

/* The dropout layer `node` on n samples of a batch, ids (n) among them: to (n) x node->out; may be
 * `from`. marks (the same size), or NULL, says NN_POOL_DEAD where an element dies. */
void nn_dropout(const struct nn_node *node, const struct nn_samples *samples, int n,
                const uint32_t *ids, const float *from, float *to, uint8_t *marks);

#endif
