/* SPDX-License-Identifier: MIT
 *
 * Goes on from a named tensor. What was current before has a name of its own (the parser sees to
 * it) and gets its gradient through that name, so what flows straight back is zero.
 */
#include <string.h>

#include "nn/layer.h"
#include "nn/name.h"
#include "nn/simd/simd.h"

static base_status load_backward(struct nn_pass *p)
{
    if (p->dother != NULL)
        nn_simd()->add((size_t)p->n * nn_shape_floats(p->node->out), p->dother, p->dy, p->dother);
    if (p->dx != NULL)
        memset(p->dx, 0, (size_t)p->n * nn_shape_floats(p->node->in) * sizeof *p->dx);
    return BASE_OK;
}

const struct nn_layer nn_layer_load = {
    .name = "load",
    .help = "goes on from a named tensor: a second branch",
    .usage = "load NAME",
    .examples =
        (const char *const[]){"input 9x3x3\nrelu\nsave a\nconv 8 3x3 pad=1\nsave b\nload a\n"
                              "conv 8 1x1\nadd b\ndense 3\nmse",
                              "input 9x1x1\nsave a\nrelu\nsave b\nload a\nload b\nadd a\n"
                              "dense 3\nmse",
                              NULL},
    .config_size = sizeof(struct nn_name),
    .parse = nn_name_parse,
    .describe = NULL, /* the shape is the named tensor's: nn/graph.c */
    .backward = load_backward,
    .naming = NN_NAMING_LOAD,
};
