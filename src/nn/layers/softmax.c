/* SPDX-License-Identifier: MIT
 *
 * The loss of classifiers: softmax and cross-entropy against the label. y is the probabilities;
 * the largest score is taken away before exp, so no score overflows.
 */
#include <float.h>
#include <math.h>

#include "nn/layer.h"
#include "nn/loss.h"
#include "nn/ops.h"

enum { SMALL = 1 << 12 }; /* elements below which a second thread costs more than it brings */

/* Computes the probabilities y (C) of one sample x (C); returns the logarithm of the sum of
 * exponentials. */
static double softmax_probabilities(int c, const float *x, float *y, size_t floats)
{
    float largest = x[nn_loss_argmax(c, x)];
    double sum = 0;

    for (int i = 0; i < c; i++) {
        y[i] = expf(x[i] - largest);
        sum += (double)y[i];
    }
    for (int i = 0; i < c; i++)
        y[i] = (float)((double)y[i] / sum);
    for (size_t i = (size_t)c; i < floats; i++)
        y[i] = 0;
    return log(sum) + (double)largest;
}

static base_status softmax_forward(struct nn_pass *p)
{
    int c = p->node->in.c;
    size_t floats = nn_shape_floats(p->node->in);
    double *losses = p->keep;

#pragma omp parallel for if ((size_t)p->n * floats > SMALL)
    for (int j = 0; j < p->n; j++) {
        const float *x = p->x + (size_t)j * floats;
        double logarithm = softmax_probabilities(c, x, p->y + (size_t)j * floats, floats);

        p->predicted[j] = nn_loss_argmax(c, x);
        losses[j] = p->samples->labels != NULL ? logarithm - (double)x[p->samples->labels[j]] : 0.0;
    }
    p->loss_sum = nn_loss_total(p->n, losses);
    return BASE_OK;
}

static base_status softmax_backward(struct nn_pass *p)
{
    size_t floats = nn_shape_floats(p->node->in);

#pragma omp parallel for
    for (int j = 0; j < p->n; j++) {
        const float *y = p->y + (size_t)j * floats;
        float *dx = p->dx + (size_t)j * floats;

        for (size_t i = 0; i < floats; i++)
            dx[i] = y[i] * p->loss_scale;
        dx[p->samples->labels[j]] -= p->loss_scale;
    }
    return BASE_OK;
}

/* A probability of zero counts as the smallest float, so that losses can be compared and summed. */
static double softmax_sample_loss(int count, const float *y, int32_t label)
{
    (void)count;
    return -log((double)fmaxf(y[label], FLT_MIN));
}

static base_status softmax_express(const struct nn_node *node, struct nn_ops *ops)
{
    (void)node;
    nn_ops_flatten(ops);
    nn_op_whole(nn_ops_add(ops, "Softmax"), "axis", 1);
    return BASE_OK;
}

const struct nn_layer nn_layer_softmax = {
    .name = "softmax",
    .help = "loss: softmax and cross-entropy (the default of classes)",
    .usage = "softmax",
    .examples =
        (const char *const[]){"input 5x1x1\ndense 3\nsoftmax", "input 11x1x1\nrelu\nsoftmax", NULL},
    .describe = nn_loss_describe,
    .forward = softmax_forward,
    .backward = softmax_backward,
    .express = softmax_express,
    .sample_loss = softmax_sample_loss,
    .probabilities = true,
    .loss = true,
    .needs_y = true,
};
