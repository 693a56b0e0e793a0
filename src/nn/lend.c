/* SPDX-License-Identifier: MIT
 *
 * Borrows a network's weights and gradients, a group of layers at a time (nn_lender of nn/net.h),
 * or waits for a group's weights where they are on their way (nn_await). The passes point at what
 * is lent only while it is; afterwards at nothing, so that a use at the wrong time is a crash and
 * not a wrong number.
 */
#include <string.h>

#include "nn/net_private.h"

/* Does this pass need a lender at all? */
static bool borrows(const struct nn_net *net, bool backward)
{
    return net->setup.lender.weights || (backward && net->setup.lender.gradients);
}

/* Index of the group whose first (or last) layer that is, or -1. */
static int group_at(const struct nn_net *net, int j, bool first)
{
    int index = net->setup.first + j;

    for (int i = 0; i < net->group_count; i++)
        if (index == (first ? net->groups[i].first : net->groups[i].last - 1))
            return i;
    return -1;
}

static void point(struct nn_net *net, const struct nn_group *group)
{
    const struct nn_loan *loan = &net->loan;
    int first = group->first - net->setup.first, last = group->last - net->setup.first;

    if (net->setup.lender.weights)
        nn_net_point_weights(net->piece, first, last, loan->weights, group->weights.from);
    if (net->setup.lender.gradients && loan->backward)
        nn_net_point_gradients(net->piece, first, last, loan->gradients, group->weights.from);
}

/* Floats between the tensors of a group, which no kernel writes and a sum over workers adds up. */
static void clear_gaps(const struct nn_graph *graph, struct nn_range range, float *gradients)
{
    size_t at = range.from, end = range.from + range.count;

    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        if (t->offset < range.from || t->offset >= end)
            continue;
        memset(gradients + (at - range.from), 0, (t->offset - at) * sizeof(float));
        at = t->offset + t->floats;
    }
    memset(gradients + (at - range.from), 0, (end - at) * sizeof(float));
}

base_status nn_lend_before(struct nn_net *net, int j, bool backward)
{
    base_status st = BASE_OK;
    const struct nn_lender *lender = &net->setup.lender;
    int group = borrows(net, backward) ? group_at(net, j, !backward) : -1;
    int next = backward ? group - 1 : group + 1;

    if (group < 0)
        return BASE_OK;
    net->loan = (struct nn_loan){
        .group = group, .next = next < net->group_count ? next : -1, .backward = backward};
    TRY(lender->borrow(lender->context, &net->loan));
    if (backward && lender->gradients && net->piece->n == 0) /* most layers will not run */
        memset(net->loan.gradients, 0, net->groups[group].weights.count * sizeof(float));
    else if (backward && lender->gradients)
        clear_gaps(net->graph, net->groups[group].weights, net->loan.gradients);
    point(net, &net->groups[group]);
out:
    return st;
}

base_status nn_lend_after(struct nn_net *net, int j, bool backward)
{
    const struct nn_lender *lender = &net->setup.lender;
    int group = borrows(net, backward) ? group_at(net, j, backward) : -1;
    struct nn_loan loan = net->loan;

    if (group < 0)
        return BASE_OK;
    net->loan = (struct nn_loan){.group = group, .backward = backward};
    point(net, &net->groups[group]);
    return lender->give_back(lender->context, &loan);
}

base_status nn_await_before(const struct nn_net *net, int j)
{
    const struct nn_await *await = &net->setup.await;
    int group = await->range != NULL ? group_at(net, j, true) : -1;
    const struct nn_range *range;

    if (group < 0)
        return BASE_OK;
    range = &net->groups[group].weights;
    return await->range(await->context, range->from - net->weight_range.from, range->count);
}
