/* SPDX-License-Identifier: MIT
 *
 * What the layers' describe functions share. Not a base class: a layer that needs none of this
 * includes none of it.
 */
#include "nn/layer.h"

#include <assert.h>

#include "base/mem.h"

static void fill(struct nn_tensor *slot, const struct nn_node *node, const char *suffix,
                 struct nn_tensor tensor)
{
    *slot = tensor;
    slot->name = base_format("%s.%s", node->name, suffix);
    nn_tensor_size(slot);
}

void nn_node_param(struct nn_node *node, const char *suffix, struct nn_tensor tensor)
{
    assert(node->params < NN_MAX_PARAMS);
    fill(&node->param[node->params++], node, suffix, tensor);
}

void nn_node_stat(struct nn_node *node, const char *suffix, struct nn_tensor tensor)
{
    assert(node->stats < NN_MAX_STATS);
    fill(&node->stat[node->stats++], node, suffix, tensor);
}

base_status nn_node_needs_image(const struct nn_node *node)
{
    if (!node->in.flat)
        return BASE_OK;
    return base_fail(BASE_ERR_MODEL,
                     "%s needs an image, but a vector of %zu values comes in; put it before "
                     "`flatten` and `dense`",
                     node->layer->name, nn_shape_values(node->in));
}
