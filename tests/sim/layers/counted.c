/* SPDX-License-Identifier: MIT
 *
 * The loss of a model that counts (counter.c): what goes back is the part of a step that a sample
 * is, and which sample it is. Every prediction is right, and every loss 1.
 */
#include <string.h>

#include "nn/loss.h"

static base_status counted_forward(struct nn_pass *p)
{
    memcpy(p->y, p->x, (size_t)p->n * nn_shape_floats(p->node->in) * sizeof *p->y);
    for (int j = 0; j < p->n; j++)
        p->predicted[j] = p->samples->labels[j];
    p->loss_sum = p->n;
    return BASE_OK;
}

static base_status counted_backward(struct nn_pass *p)
{
    size_t floats = nn_shape_floats(p->node->in);

    memset(p->dx, 0, (size_t)p->n * floats * sizeof *p->dx);
    for (int j = 0; j < p->n; j++) {
        p->dx[(size_t)j * floats] = p->loss_scale;
        p->dx[(size_t)j * floats + 1] = (float)p->samples->ids[j];
    }
    return BASE_OK;
}

const struct nn_layer nn_layer_counted = {
    .name = "counted",
    .help = "loss of a model that counts",
    .usage = "counted",
    .describe = nn_loss_describe,
    .forward = counted_forward,
    .backward = counted_backward,
    .loss = true,
};
