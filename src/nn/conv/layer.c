/* SPDX-License-Identifier: MIT
 *
 * The form at work for a convolution layer: nn/conv/layer.h.
 */
#include "nn/conv/layer.h"

#include "base/mem.h"

struct nn_shape nn_conv_layer_out(const struct nn_node *node)
{
    const struct nn_conv_config *c = node->config;
    int h = node->in.h + 2 * c->pad[0], w = node->in.w + 2 * c->pad[1];

    return (struct nn_shape){.c = c->out,
                             .h = (h - c->kernel[0]) / c->stride[0] + 1,
                             .w = (w - c->kernel[1]) / c->stride[1] + 1};
}

void nn_conv_layer_shape(const struct nn_node *node, struct nn_conv_shape *shape)
{
    const struct nn_conv_config *c = node->config;

    shape->in = node->in;
    shape->out = nn_conv_layer_out(node);
    for (int i = 0; i < 2; i++) {
        shape->kernel[i] = c->kernel[i];
        shape->stride[i] = c->stride[i];
        shape->pad[i] = c->pad[i];
    }
    shape->groups = c->groups;
    shape->bias = c->bias;
}

base_status nn_conv_layer_open(const struct nn_node *node, struct nn_open *open, void **state_p)
{
    base_status st = BASE_OK;
    struct nn_conv_shape shape = {
        .n_max = open->n_max, .training = open->training, .want_dx = open->want_dx};
    struct nn_conv_work *work = base_calloc(1, sizeof *work);
    const struct nn_conv *conv;

    *state_p = NULL;
    nn_conv_layer_shape(node, &shape);
    TRY(nn_conv_choose(open->kernel, &shape, &conv));
    TRY(nn_conv_work_init(work, conv, &shape));
    work->scratch_bytes = (work->scratch_bytes + BASE_ALIGN - 1) / BASE_ALIGN * BASE_ALIGN;
    open->scratch_bytes = work->scratch_bytes;
    open->chosen = conv->name;
    *state_p = work;
    work = NULL;
out:
    nn_conv_layer_close(work);
    return st;
}

void nn_conv_layer_close(void *state)
{
    if (state != NULL)
        nn_conv_work_fini(state);
    base_free(state);
}
