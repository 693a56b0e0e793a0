/* SPDX-License-Identifier: MIT
 *
 * A network at work: a step only sets what changes (samples, n) and calls the layers in order, one
 * nn_pass each, which netsetup.c has filled with pointers. Allocates nothing. One thread drives it.
 */
#include "nn/net.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "nn/net_private.h"

void nn_net_piece(struct nn_net *net, int piece)
{
    assert(piece >= 0 && (piece == 0 || piece < net->setup.in_flight));
    net->piece = &net->pieces[piece];
}

/* ---- forward ---- */

/* canonical (n,C,H,W) → the same, or (n,C/8,H,W,8) with zeros in the padding. */
static void copy_input(struct nn_shape shape, int n, const float *canonical, float *blocked)
{
    size_t floats = nn_shape_floats(shape), values = nn_shape_values(shape);
    size_t area = (size_t)shape.h * (size_t)shape.w;

    if (shape.planar) {
        memcpy(blocked, canonical, (size_t)n * floats * sizeof *blocked);
        return;
    }
    if (shape.c % NN_BLOCK != 0)
        memset(blocked, 0, (size_t)n * floats * sizeof *blocked);
#pragma omp parallel for if (n > 1)
    for (int j = 0; j < n; j++)
        for (int c = 0; c < shape.c; c++) {
            const float *from = canonical + (size_t)j * values + (size_t)c * area;
            float *to = blocked + (size_t)j * floats + nn_shape_at(shape, c, 0, 0);

            for (size_t i = 0; i < area; i++)
                to[i * NN_BLOCK] = from[i];
        }
}

static void take_input(struct nn_net *net, const struct nn_batch *batch)
{
    const struct nn_plan_node *nodes = net->plan->nodes;
    struct nn_piece *piece = net->piece;

    if (net->setup.first > 0)
        return;
    if (nodes[0].x != NN_PLAN_INPUT) {
        copy_input(piece->passes[0].node->in, batch->n, batch->x,
                   nn_net_at(net, piece, nodes[0].x));
        return;
    }
    for (int j = 0; j < nn_net_layers(net) && nodes[j].x == NN_PLAN_INPUT; j++)
        piece->passes[j].x = batch->x;
}

static base_status take_samples(struct nn_net *net, const struct nn_batch *batch)
{
    size_t n = (size_t)batch->n;
    int classes = nn_graph_classes(net->graph);
    struct nn_piece *piece = net->piece;

    piece->samples = batch->samples;
    piece->samples.ids = piece->ids;
    if (batch->samples.ids != NULL)
        memcpy(piece->ids, batch->samples.ids, n * sizeof *piece->ids);
    else
        memset(piece->ids, 0, n * sizeof *piece->ids);
    if (batch->samples.targets != NULL && !nn_graph_predicts_number(net->graph))
        return base_fail(BASE_ERR_MODEL, "the model does not end in one output and `mse`, and "
                                         "cannot predict a number");
    if (batch->samples.labels == NULL)
        return BASE_OK;
    for (size_t j = 0; j < n; j++) {
        piece->labels[j] = batch->samples.labels[j];
        if (piece->labels[j] < 0 || piece->labels[j] >= classes)
            return base_fail(BASE_ERR_DATA, "sample %u has label %d, but the model has %d classes",
                             piece->ids[j], piece->labels[j], classes);
    }
    piece->samples.labels = piece->labels;
    return BASE_OK;
}

static const float *output_of(const struct nn_net *net, int j)
{
    const struct nn_pass *pass = &net->piece->passes[j];

    return net->plan->nodes[j].y == NN_PLAN_INPUT ? pass->x : pass->y;
}

static double now(const struct nn_net *net)
{
    return net->times != NULL ? base_now() : 0;
}

/* Without samples only the layers run that others wait for. */
static bool is_due(const struct nn_net *net, const struct nn_node *node)
{
    return net->piece->n > 0 || (node->layer->reduces && net->setup.reduce.sum != NULL);
}

static base_status forward_layer(struct nn_net *net, int j, bool training)
{
    base_status st = BASE_OK;
    struct nn_pass *pass = &net->piece->passes[j];
    const struct nn_net_hook *hook = &net->hooks[j];

    pass->n = net->piece->n;
    pass->training = training;
    if (!pass->node->identity && pass->node->layer->forward != NULL && is_due(net, pass->node))
        TRY(pass->node->layer->forward(pass));
    if (hook->call != NULL && !pass->node->hidden)
        hook->call(hook->context, pass->node, net->piece->n, output_of(net, j));
out:
    return base_prefix(st, "layer %s", pass->node->name);
}

static void tell_outcome(const struct nn_net *net, struct nn_outcome *outcome)
{
    const struct nn_piece *piece = net->piece;
    const struct nn_pass *last = &piece->passes[nn_net_layers(net) - 1];

    if (!last->node->layer->loss || piece->n == 0)
        return;
    outcome->loss_sum = last->loss_sum;
    outcome->predicted = piece->predicted;
    for (int j = 0; j < piece->n && piece->samples.labels != NULL; j++)
        outcome->correct += piece->predicted[j] == piece->labels[j];
}

base_status nn_net_forward(struct nn_net *net, const struct nn_batch *batch, bool training,
                           struct nn_outcome *outcome_p)
{
    base_status st = BASE_OK;
    struct nn_piece *piece = net->piece;

    *outcome_p = (struct nn_outcome){0};
    piece->can_learn = false;
    if (batch->n < (net->setup.reduce.sum == NULL && net->setup.lender.borrow == NULL) ||
        batch->n > net->setup.n_max)
        TRY(base_fail(BASE_ERR_INTERNAL, "a batch of %d samples in a network made for %d", batch->n,
                      net->setup.n_max));
    piece->n = batch->n;
    TRY(take_samples(net, batch));
    take_input(net, batch);
    for (int j = 0; j < nn_net_layers(net); j++) {
        double began;

        TRY(nn_lend_before(net, j, false));
        TRY(nn_await_before(net, j));
        began = now(net);
        TRY(forward_layer(net, j, training));
        if (net->times != NULL)
            net->times[j].forward += now(net) - began;
        TRY(nn_lend_after(net, j, false));
    }
    piece->can_learn = training && net->setup.training;
    tell_outcome(net, outcome_p);
out:
    return st;
}

/* ---- backward ---- */

/* Which of a layer's gradients a call computes. */
enum gradients { OF_INPUT = 1, OF_PARAMETERS = 2, OF_BOTH = 3 };

static base_status run_backward(const struct nn_pass *whole, enum gradients which)
{
    struct nn_pass pass = *whole;

    if ((which & OF_INPUT) == 0)
        pass.dx = NULL;
    if ((which & OF_PARAMETERS) == 0)
        memset(pass.dparam, 0, sizeof pass.dparam);
    if (pass.dx == NULL && (which & OF_PARAMETERS) == 0)
        return BASE_OK;
    return base_prefix(pass.node->layer->backward(&pass), "layer %s", pass.node->name);
}

static base_status backward_layer(struct nn_net *net, int j, float scale, enum gradients which)
{
    struct nn_pass *pass = &net->piece->passes[j];
    const struct nn_node *node = pass->node;
    const struct nn_plan_node *places = &net->plan->nodes[j];
    bool save = node->layer->naming == NN_NAMING_SAVE;

    if (!places->runs || node->layer->backward == NULL || (node->identity && !save) ||
        !is_due(net, node))
        return BASE_OK;
    if (places->first_use && pass->dother != NULL)
        memset(pass->dother, 0,
               (size_t)net->piece->n *
                   nn_shape_floats(nn_graph_node(net->graph, node->named)->out) * sizeof(float));
    pass->loss_scale = scale;
    return run_backward(pass, which);
}

/* The layer's part of the gradient buffer. */
static void tell_ready(const struct nn_net *net, const struct nn_node *node, struct nn_ready ready)
{
    struct nn_range range;

    if (ready.range == NULL || node->params == 0 || net->setup.lender.gradients)
        return;
    range = nn_graph_weights_of(net->graph, node->index, node->index + 1);
    ready.range(ready.context, range.from - net->weight_range.from, range.count);
}

base_status nn_net_backward(struct nn_net *net, float scale, struct nn_ready ready)
{
    base_status st = BASE_OK;
    const struct nn_piece *piece = net->piece;
    const struct nn_node *last = piece->passes[nn_net_layers(net) - 1].node;

    if (!piece->can_learn ||
        (last->layer->loss && piece->samples.labels == NULL && piece->samples.targets == NULL))
        TRY(base_fail(BASE_ERR_INTERNAL, "a backward without a training forward with labels"));
    for (int j = nn_net_layers(net) - 1; j >= 0; j--) {
        double began;

        TRY(nn_lend_before(net, j, true));
        began = now(net);
        TRY(backward_layer(net, j, scale, net->plan->nodes[j].deferred ? OF_INPUT : OF_BOTH));
        if (net->times != NULL)
            net->times[j].backward += now(net) - began;
        TRY(nn_lend_after(net, j, true));
        if (!net->plan->nodes[j].deferred)
            tell_ready(net, piece->passes[j].node, ready);
    }
out:
    return st;
}

int nn_net_deferred(const struct nn_net *net)
{
    int count = 0;

    for (int j = 0; j < nn_net_layers(net); j++)
        count += net->plan->nodes[j].deferred;
    return count;
}

base_status nn_net_backward_deferred(struct nn_net *net, int which, struct nn_ready ready)
{
    base_status st = BASE_OK;
    int j = nn_net_layers(net) - 1;
    double began = now(net);

    while (which > 0 || !net->plan->nodes[j].deferred)
        which -= net->plan->nodes[j--].deferred;
    TRY(run_backward(&net->piece->passes[j], OF_PARAMETERS));
    if (net->times != NULL)
        net->times[j].backward += now(net) - began;
    tell_ready(net, net->piece->passes[j].node, ready);
out:
    return st;
}

/* ---- looking in ---- */

int nn_net_last(const struct nn_net *net)
{
    return net->setup.first + nn_net_layers(net) - 1;
}

base_status nn_net_output(const struct nn_net *net, int index, int sample, float *values)
{
    int j = index - net->setup.first;
    const struct nn_node *node;
    struct nn_shape shape;
    const float *from;

    if (j < 0 || j >= nn_net_layers(net) || sample < 0 || sample >= net->piece->n)
        return base_fail(BASE_ERR_INTERNAL, "no output of layer %d, sample %d here", index, sample);
    node = net->piece->passes[j].node;
    shape = node->out;
    if (!net->plan->nodes[j].y_stays)
        return base_fail(BASE_ERR_INTERNAL, "the output of layer %s is not kept in this network",
                         node->name);
    from = output_of(net, j) + (size_t)sample * nn_shape_floats(shape);
    for (int c = 0; c < shape.c; c++)
        for (int h = 0; h < shape.h; h++)
            for (int w = 0; w < shape.w; w++)
                *values++ = from[nn_shape_at(shape, c, h, w)];
    return BASE_OK;
}

void nn_net_hook(struct nn_net *net, int index, nn_hook hook, void *context)
{
    int j = index - net->setup.first;

    if (j >= 0 && j < nn_net_layers(net))
        net->hooks[j] = (struct nn_net_hook){hook, context};
}

void nn_net_profile(struct nn_net *net, struct nn_layer_time *times)
{
    net->times = times;
}

static int list_edges(const struct nn_net *net, const struct nn_plan_edge *planned, int count,
                      struct nn_edge *edges, int capacity)
{
    for (int i = 0; i < count && i < capacity; i++)
        edges[i] = (struct nn_edge){.shape = planned[i].shape,
                                    .values = nn_net_at(net, net->piece, planned[i].values),
                                    .gradients = nn_net_at(net, net->piece, planned[i].gradients)};
    return count;
}

int nn_net_entering(const struct nn_net *net, struct nn_edge *edges, int capacity)
{
    return list_edges(net, net->plan->entering, net->plan->enters, edges, capacity);
}

int nn_net_leaving(const struct nn_net *net, struct nn_edge *edges, int capacity)
{
    return list_edges(net, net->plan->leaving, net->plan->leaves, edges, capacity);
}
