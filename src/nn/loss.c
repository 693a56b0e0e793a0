/* SPDX-License-Identifier: MIT
 *
 * What the loss layers share: nn/loss.h.
 */
#include "nn/loss.h"

base_status nn_loss_describe(struct nn_node *node)
{
    struct nn_shape in = node->in;

    if (in.h != 1 || in.w != 1)
        return base_fail(BASE_ERR_MODEL,
                         "%s compares a vector of scores with the label, but %dx%dx%d comes in; "
                         "end the model with `dense classes`",
                         node->layer->name, in.c, in.h, in.w);
    if (node->classes != 0 && in.c != node->classes)
        return base_fail(BASE_ERR_MODEL,
                         "the model gives %d scores for %d classes; end it with `dense classes`",
                         in.c, node->classes);
    node->out = in;
    node->flops = 4.0 * in.c;
    node->keep_bytes = sizeof(double);
    return BASE_OK;
}

int nn_loss_argmax(int count, const float *scores)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

double nn_loss_total(int n, const double *losses)
{
    double sum = 0;

    for (int j = 0; j < n; j++)
        sum += losses[j];
    return sum;
}
