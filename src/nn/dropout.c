/* SPDX-License-Identifier: MIT
 *
 * Dropout on the samples of a pass: nn/dropout.h.
 */
#include "nn/dropout.h"

#include "nn/simd/simd.h"

float nn_dropout_factor(const struct nn_node *node)
{
    const struct nn_dropout_config *c = node->config;

    return 1.0f / (1.0f - (float)c->rate);
}

void nn_dropout(const struct nn_pass *p, const struct nn_node *node, const float *from, float *to,
                uint8_t *marks)
{
    const struct nn_dropout_config *c = node->config;
    const struct nn_samples *s = p->samples;

    nn_simd()->dropout(p->n, nn_shape_floats(node->in), (float)c->rate, s->seed,
                       (uint32_t)node->index, s->epoch, s->ids, from, to, marks);
}
