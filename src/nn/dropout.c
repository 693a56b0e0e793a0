/* SPDX-License-Identifier: MIT
 *
 * Dropout on samples of a batch: nn/dropout.h.
 */
#include "nn/dropout.h"

#include "nn/simd/simd.h"

float nn_dropout_factor(const struct nn_node *node)
{
    const struct nn_dropout_config *c = node->config;

    return 1.0f / (1.0f - (float)c->rate);
}

void nn_dropout(const struct nn_node *node, const struct nn_samples *samples, int n,
                const uint32_t *ids, const float *from, float *to, uint8_t *marks)
{
    const struct nn_dropout_config *c = node->config;

    nn_simd()->dropout(n, nn_shape_floats(node->in), (float)c->rate, samples->seed,
                       (uint32_t)node->index, samples->epoch, ids, from, to, marks);
}
