/* SPDX-License-Identifier: MIT
 *
 * The first convolution of few channels, with its ReLU: outputs many times its inputs, so a pass
 * over them counts. Forms that know nothing of a ReLU get one before or after them. Not for
 * other convolutions, nor where a pool follows that the ReLU goes with (relu-maxpool.c).
 */
#include <string.h>

#include "nn/conv/layer.h"
#include "nn/fuse.h"
#include "nn/pool.h"

static bool conv_relu_fits(const struct nn_node *nodes)
{
    const struct nn_node *next = &nodes[2]; /* there is one: a model ends with its loss */

    return nodes[0].in.planar &&
           (strcmp(next->layer->name, "maxpool") != 0 || !nn_pool_halves(next));
}

static size_t outputs(const struct nn_node *node, int n)
{
    return (size_t)n * nn_shape_floats(node->out);
}

static base_status conv_relu_open(const struct nn_node *node, struct nn_open *open, void **state_p)
{
    base_status st = nn_conv_layer_open(node, open, state_p);
    const struct nn_conv_work *work = *state_p;

    if (st == BASE_OK && open->training && work->conv->backward_relu == NULL)
        open->scratch_bytes += outputs(node, open->n_max) * sizeof(float);
    return st;
}

static base_status conv_relu_forward(struct nn_pass *p)
{
    base_status st = BASE_OK;
    const struct nn_conv_work *work = p->state;

    if (work->conv->forward_relu != NULL)
        return work->conv->forward_relu(work, p->n, p->x, p->param[0], p->param[1], p->y,
                                        p->scratch);
    TRY(work->conv->forward(work, p->n, p->x, p->param[0], p->param[1], p->y, p->scratch));
    nn_simd()->relu(outputs(p->node, p->n), p->y, p->y);
out:
    return st;
}

static base_status conv_relu_backward(struct nn_pass *p)
{
    const struct nn_conv_work *work = p->state;
    float *masked = p->scratch + work->scratch_bytes / sizeof *p->scratch;

    if (work->conv->backward_relu != NULL)
        return work->conv->backward_relu(work, p->n, p->x, p->y, p->dy, p->dparam[0], p->dparam[1],
                                         p->scratch);
    nn_simd()->relu_backward(outputs(p->node, p->n), p->y, p->dy, masked);
    return work->conv->backward(work, p->n, p->x, masked, p->param[0], p->dparam[0], p->dparam[1],
                                p->dx, p->scratch);
}

const struct nn_fused nn_fused_conv_relu = {
    .layer =
        {
            .name = "conv+relu",
            .help = "a first convolution and ReLU in one pass",
            .examples = (const char *const[]){"input 1x6x5\nconv 9 3x3\nrelu\ndense 3\nmse",
                                              "input 3x5x4\nconv 20 3x3 pad=1 bias=off\nrelu\n"
                                              "maxpool 3\ndense 3\nmse",
                                              NULL},
            .open = conv_relu_open,
            .close = nn_conv_layer_close,
            .forward = conv_relu_forward,
            .backward = conv_relu_backward,
            .takes_planar = true,
            .needs_x = true,
            .needs_y = true,
        },
    .fits = conv_relu_fits,
};
