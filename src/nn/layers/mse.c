/* SPDX-License-Identifier: MIT
 *
 * Mean squared error against the one-hot label, or of one output against a number: of a sample the
 * mean over its outputs, as torch.nn.MSELoss. y is x.
 */
#include <string.h>

#include "nn/layer.h"
#include "nn/loss.h"
#include "nn/ops.h"

static double mse_sample_loss(int count, const float *y, int32_t label)
{
    double sum = 0;

    for (int i = 0; i < count; i++) {
        double error = (double)y[i] - (i == label ? 1.0 : 0.0);

        sum += error * error;
    }
    return sum / count;
}

/* The loss of sample j; 0 if its target is not known. */
static double mse_loss_of(const struct nn_samples *samples, int c, const float *x, int j)
{
    double error;

    if (samples->targets == NULL)
        return samples->labels != NULL ? mse_sample_loss(c, x, samples->labels[j]) : 0;
    error = (double)x[0] - (double)samples->targets[j];
    return error * error;
}

static base_status mse_forward(struct nn_pass *p)
{
    int c = p->node->in.c;
    size_t floats = nn_shape_floats(p->node->in);
    double *losses = p->keep;

    for (int j = 0; j < p->n; j++) {
        const float *x = p->x + (size_t)j * floats;

        p->predicted[j] = nn_loss_argmax(c, x);
        losses[j] = mse_loss_of(p->samples, c, x, j);
    }
    memcpy(p->y, p->x, (size_t)p->n * floats * sizeof *p->y);
    p->loss_sum = nn_loss_total(p->n, losses);
    return BASE_OK;
}

static base_status mse_backward(struct nn_pass *p)
{
    size_t floats = nn_shape_floats(p->node->in);
    float scale = 2.0f * p->loss_scale / (float)p->node->in.c;

    for (int j = 0; j < p->n; j++) {
        const float *y = p->y + (size_t)j * floats;
        float *dx = p->dx + (size_t)j * floats;

        for (size_t i = 0; i < floats; i++)
            dx[i] = y[i] * scale;
        if (p->samples->targets != NULL)
            dx[0] = (y[0] - p->samples->targets[j]) * scale;
        else
            dx[p->samples->labels[j]] -= scale;
    }
    return BASE_OK;
}

static base_status mse_express(const struct nn_node *node, struct nn_ops *ops)
{
    (void)node;
    nn_ops_flatten(ops);
    nn_ops_add(ops, "Identity");
    return BASE_OK;
}

const struct nn_layer nn_layer_mse = {
    .name = "mse",
    .help = "loss: mean squared error, of a number (the default) or against one-hot labels",
    .usage = "mse",
    .examples = (const char *const[]){"input 5x1x1\ndense 3\nmse", "input 9x1x1\nrelu\nmse", NULL},
    .describe = nn_loss_describe,
    .forward = mse_forward,
    .backward = mse_backward,
    .express = mse_express,
    .sample_loss = mse_sample_loss,
    .loss = true,
    .takes_targets = true,
    .needs_y = true,
};
