/* SPDX-License-Identifier: MIT
 *
 * Gives the current tensor a name. The layers that use the name sum its gradient; the backward
 * adds that sum to the gradient that came down the main path.
 */
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/simd/simd.h"

static base_status save_describe(struct nn_node *node)
{
    node->out = node->in;
    node->identity = true;
    return BASE_OK;
}

static base_status save_backward(struct nn_pass *p)
{
    nn_simd()->add((size_t)p->n * nn_shape_floats(p->node->in), p->dy, p->dother, p->dx);
    return BASE_OK;
}

const struct nn_layer nn_layer_save = {
    .name = "save",
    .help = "keeps the current tensor under a name, for add and load",
    .usage = "save NAME",
    .examples = (const char *const[]){"input 3x4x4\nsave a\nrelu\nadd a\nadd a\ndense 3\nmse",
                                      "input 9x1x1\ndense 10\nsave a\nsave b\nrelu\nadd b\nadd a\n"
                                      "dense 3\nmse",
                                      NULL},
    .config_size = sizeof(struct nn_name),
    .parse = nn_name_parse,
    .describe = save_describe,
    .backward = save_backward,
    .naming = NN_NAMING_SAVE,
};
