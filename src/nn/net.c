/* SPDX-License-Identifier: MIT
 *
 * A range of layers instantiated. Set-up makes the memory plan, opens the layers and fills one
 * nn_pass a layer with its pointers; a step only sets what changes (samples, n) and calls the
 * layers in order. Owns the block of activations, the scratch memory, and the flat buffers that
 * the caller did not bring. One thread drives it.
 */
#include "nn/net.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "nn/fuse.h"
#include "nn/kernelplan.h"
#include "nn/plan.h"

struct hook {
    nn_hook call;
    void *context;
};

struct nn_net {
    const struct nn_graph *graph; /* the caller's, or the view */
    struct nn_graph *view;        /* with layers fused, or NULL */
    struct nn_setup setup;
    struct nn_plan *plan;
    struct nn_pass *passes; /* (layers) */
    struct hook *hooks;     /* (layers) */
    char *block;            /* activations and gradients, as planned */
    float *scratch;
    float *weights, *gradients, *statistics;
    float *own_weights, *own_gradients, *own_statistics;
    int32_t *labels, *predicted; /* (n_max) */
    uint32_t *ids;               /* (n_max) */
    struct nn_samples samples;
    int n;          /* of the last forward */
    bool can_learn; /* the last forward was a training one with labels */
    char *kernels;
    struct nn_layer_time *times; /* NULL: nobody asked */
};

static float *at(const struct nn_net *net, int buffer)
{
    return buffer < 0 ? NULL : (float *)(void *)(net->block + net->plan->buffers[buffer].offset);
}

static int layers_of(const struct nn_net *net)
{
    return net->plan->layers;
}

/* ---- set-up ---- */

static void point(struct nn_net *net, int j)
{
    const struct nn_plan_node *places = &net->plan->nodes[j];
    struct nn_pass *pass = &net->passes[j];
    const struct nn_node *node = nn_graph_node(net->graph, net->setup.first + j);

    pass->node = node;
    pass->x = at(net, places->x);
    pass->y = at(net, places->y);
    pass->other = at(net, places->other);
    pass->dy = at(net, places->dy);
    pass->dx = at(net, places->dx);
    pass->dother = at(net, places->dother);
    pass->keep = at(net, places->keep);
    for (int t = 0; t < node->params; t++) {
        pass->param[t] = net->weights + node->param[t].offset;
        if (net->gradients != NULL)
            pass->dparam[t] = net->gradients + node->param[t].offset;
    }
    for (int t = 0; t < node->stats; t++)
        pass->stat[t] = net->statistics + node->stat[t].offset;
    pass->reduce = net->setup.reduce;
    pass->team = net->setup.team;
    pass->samples = &net->samples;
    pass->predicted = net->predicted;
}

static base_status open_layer(struct nn_net *net, int j, size_t *scratch_bytes,
                              struct base_str *kernels)
{
    base_status st = BASE_OK;
    struct nn_pass *pass = &net->passes[j];
    const struct nn_node *node = pass->node;
    char *kernel = nn_kernelplan_kernel(net->setup.kernels, node);
    struct nn_open open = {.n_max = net->setup.n_max,
                           .training = net->setup.training,
                           .want_dx = pass->dx != NULL,
                           .kernel = kernel};

    if (node->layer->open == NULL)
        goto out;
    TRY(node->layer->open(node, &open, &pass->state));
    if (open.scratch_bytes > *scratch_bytes)
        *scratch_bytes = open.scratch_bytes;
    if (open.chosen != NULL)
        base_str_add(kernels, "%s%s=%s", kernels->length ? " " : "", node->name, open.chosen);
out:
    base_free(kernel);
    return base_prefix(st, "layer %s", node->name);
}

static base_status open_layers(struct nn_net *net)
{
    base_status st = BASE_OK;
    struct base_str kernels = {0};
    size_t scratch_bytes = 0;

    for (int j = 0; j < layers_of(net); j++)
        TRY(open_layer(net, j, &scratch_bytes, &kernels));
    TRY(base_tensor(scratch_bytes, 1, "the kernels' working memory", &net->scratch));
    for (int j = 0; j < layers_of(net); j++)
        net->passes[j].scratch = net->scratch;
    net->kernels = base_str_take(&kernels);
out:
    base_str_fini(&kernels);
    return st;
}

/* The caller's buffer, or an own one. */
static base_status flat_buffer(float *given, size_t floats, const char *what, float **own_p,
                               float **buffer_p)
{
    base_status st = BASE_OK;

    if (given == NULL)
        TRY(base_tensor(floats, sizeof(float), what, own_p));
    *buffer_p = given != NULL ? given : *own_p;
out:
    return st;
}

static base_status allocate(struct nn_net *net)
{
    base_status st = BASE_OK;
    size_t weights = nn_graph_weight_floats(net->graph), n = (size_t)net->setup.n_max;

    TRY(base_tensor(net->plan->bytes, 1, "activations", &net->block));
    TRY(flat_buffer(net->setup.weights, weights, "weights", &net->own_weights, &net->weights));
    TRY(flat_buffer(net->setup.statistics, nn_graph_stat_floats(net->graph), "statistics",
                    &net->own_statistics, &net->statistics));
    if (net->setup.training)
        TRY(flat_buffer(net->setup.gradients, weights, "gradients", &net->own_gradients,
                        &net->gradients));
    TRY(base_tensor(n, sizeof *net->labels, "labels", &net->labels));
    TRY(base_tensor(n, sizeof *net->predicted, "predictions", &net->predicted));
    TRY(base_tensor(n, sizeof *net->ids, "sample ids", &net->ids));
out:
    return st;
}

static base_status make_plan(struct nn_net *net)
{
    const struct nn_setup *setup = &net->setup;
    int layers = nn_graph_layers(net->graph);

    if (net->setup.last == 0)
        net->setup.last = layers;
    if (!setup->apart && !setup->keep_outputs && setup->first >= 0 && setup->last <= layers)
        net->graph = net->view = nn_graph_fuse(net->graph, setup->first, setup->last);
    return nn_plan_new(net->graph,
                       &(struct nn_plan_setup){.first = setup->first,
                                               .last = setup->last,
                                               .n = setup->n_max,
                                               .training = setup->training,
                                               .keep_outputs = setup->keep_outputs,
                                               .input_gradient = setup->input_gradient},
                       &net->plan);
}

base_status nn_net_new(const struct nn_graph *graph, const struct nn_setup *setup,
                       struct nn_net **net_p)
{
    base_status st = BASE_OK;
    struct nn_net *net = base_calloc(1, sizeof *net);

    *net_p = NULL;
    net->graph = graph;
    net->setup = *setup;
    TRY(make_plan(net));
    TRY(allocate(net));
    net->passes = base_calloc((size_t)layers_of(net), sizeof *net->passes);
    net->hooks = base_calloc((size_t)layers_of(net), sizeof *net->hooks);
    for (int j = 0; j < layers_of(net); j++)
        point(net, j);
    TRY(open_layers(net));
    *net_p = net;
    net = NULL;
out:
    nn_net_free(net);
    return st;
}

void nn_net_free(struct nn_net *net)
{
    if (net == NULL)
        return;
    for (int j = 0; net->passes != NULL && j < layers_of(net); j++)
        if (net->passes[j].node->layer->close != NULL)
            net->passes[j].node->layer->close(net->passes[j].state);
    base_free(net->passes);
    base_free(net->hooks);
    base_free(net->block);
    base_free(net->scratch);
    base_free(net->own_weights);
    base_free(net->own_gradients);
    base_free(net->own_statistics);
    base_free(net->labels);
    base_free(net->predicted);
    base_free(net->ids);
    base_free(net->kernels);
    nn_plan_free(net->plan);
    nn_graph_free(net->view);
    base_free(net);
}

float *nn_net_weights(struct nn_net *net)
{
    return net->weights;
}

float *nn_net_gradients(struct nn_net *net)
{
    return net->gradients;
}

void nn_net_gradients_at(struct nn_net *net, float *gradients)
{
    net->gradients = gradients;
    for (int j = 0; j < layers_of(net); j++)
        for (int t = 0; t < net->passes[j].node->params; t++)
            net->passes[j].dparam[t] = gradients + net->passes[j].node->param[t].offset;
}

void nn_net_weights_at(struct nn_net *net, float *weights)
{
    net->weights = weights;
    for (int j = 0; j < layers_of(net); j++)
        for (int t = 0; t < net->passes[j].node->params; t++)
            net->passes[j].param[t] = weights + net->passes[j].node->param[t].offset;
}

float *nn_net_statistics(struct nn_net *net)
{
    return net->statistics;
}

uint64_t nn_net_activation_bytes(const struct nn_net *net)
{
    return net->plan->bytes;
}

const char *nn_net_kernels(const struct nn_net *net)
{
    return net->kernels;
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

    if (net->setup.first > 0)
        return;
    if (nodes[0].x != NN_PLAN_INPUT) {
        copy_input(net->passes[0].node->in, batch->n, batch->x, at(net, nodes[0].x));
        return;
    }
    for (int j = 0; j < layers_of(net) && nodes[j].x == NN_PLAN_INPUT; j++)
        net->passes[j].x = batch->x;
}

static base_status take_samples(struct nn_net *net, const struct nn_batch *batch)
{
    size_t n = (size_t)batch->n;
    int classes = nn_graph_classes(net->graph);

    net->samples = batch->samples;
    net->samples.ids = net->ids;
    if (batch->samples.ids != NULL)
        memcpy(net->ids, batch->samples.ids, n * sizeof *net->ids);
    else
        memset(net->ids, 0, n * sizeof *net->ids);
    if (batch->samples.targets != NULL && !nn_graph_predicts_number(net->graph))
        return base_fail(BASE_ERR_MODEL, "the model does not end in one output and `mse`, and "
                                         "cannot predict a number");
    if (batch->samples.labels == NULL)
        return BASE_OK;
    for (size_t j = 0; j < n; j++) {
        net->labels[j] = batch->samples.labels[j];
        if (net->labels[j] < 0 || net->labels[j] >= classes)
            return base_fail(BASE_ERR_DATA, "sample %u has label %d, but the model has %d classes",
                             net->ids[j], net->labels[j], classes);
    }
    net->samples.labels = net->labels;
    return BASE_OK;
}

static const float *output_of(const struct nn_net *net, int j)
{
    return net->plan->nodes[j].y == NN_PLAN_INPUT ? net->passes[j].x : net->passes[j].y;
}

static double now(const struct nn_net *net)
{
    return net->times != NULL ? base_now() : 0;
}

static base_status forward_layer(struct nn_net *net, int j, bool training)
{
    base_status st = BASE_OK;
    struct nn_pass *pass = &net->passes[j];
    const struct hook *hook = &net->hooks[j];

    pass->n = net->n;
    pass->training = training;
    if (!pass->node->identity && pass->node->layer->forward != NULL &&
        (net->n > 0 || pass->node->layer->reduces))
        TRY(pass->node->layer->forward(pass));
    if (hook->call != NULL && !pass->node->hidden)
        hook->call(hook->context, pass->node, net->n, output_of(net, j));
out:
    return base_prefix(st, "layer %s", pass->node->name);
}

static void tell_outcome(const struct nn_net *net, struct nn_outcome *outcome)
{
    const struct nn_pass *last = &net->passes[layers_of(net) - 1];

    if (!last->node->layer->loss || net->n == 0)
        return;
    outcome->loss_sum = last->loss_sum;
    outcome->predicted = net->predicted;
    for (int j = 0; j < net->n && net->samples.labels != NULL; j++)
        outcome->correct += net->predicted[j] == net->labels[j];
}

base_status nn_net_forward(struct nn_net *net, const struct nn_batch *batch, bool training,
                           struct nn_outcome *outcome_p)
{
    base_status st = BASE_OK;

    *outcome_p = (struct nn_outcome){0};
    net->can_learn = false;
    if (batch->n < (net->setup.reduce.sum == NULL) || batch->n > net->setup.n_max)
        TRY(base_fail(BASE_ERR_INTERNAL, "a batch of %d samples in a network made for %d", batch->n,
                      net->setup.n_max));
    net->n = batch->n;
    TRY(take_samples(net, batch));
    take_input(net, batch);
    for (int j = 0; j < layers_of(net); j++) {
        double began = now(net);

        TRY(forward_layer(net, j, training));
        if (net->times != NULL)
            net->times[j].forward += now(net) - began;
    }
    net->can_learn = training && net->setup.training;
    tell_outcome(net, outcome_p);
out:
    return st;
}

/* ---- backward ---- */

static base_status backward_layer(struct nn_net *net, int j, float scale)
{
    struct nn_pass *pass = &net->passes[j];
    const struct nn_node *node = pass->node;
    const struct nn_plan_node *places = &net->plan->nodes[j];
    bool save = node->layer->naming == NN_NAMING_SAVE;

    if (!places->runs || node->layer->backward == NULL || (node->identity && !save) ||
        (net->n == 0 && !node->layer->reduces))
        return BASE_OK;
    if (places->first_use && pass->dother != NULL)
        memset(pass->dother, 0,
               (size_t)net->n * nn_shape_floats(nn_graph_node(net->graph, node->named)->out) *
                   sizeof(float));
    pass->loss_scale = scale;
    return base_prefix(node->layer->backward(pass), "layer %s", node->name);
}

/* The layer's part of the gradient buffer, the gaps behind its tensors included. */
static void tell_ready(const struct nn_net *net, const struct nn_node *node, struct nn_ready ready)
{
    size_t begin, end;

    if (ready.range == NULL || node->params == 0)
        return;
    begin = node->param[0].offset;
    end = nn_graph_weight_floats(net->graph);
    for (int i = node->index + 1; i < nn_graph_layers(net->graph); i++)
        if (nn_graph_node(net->graph, i)->params > 0) {
            end = nn_graph_node(net->graph, i)->param[0].offset;
            break;
        }
    ready.range(ready.context, begin, end - begin);
}

base_status nn_net_backward(struct nn_net *net, float scale, struct nn_ready ready)
{
    base_status st = BASE_OK;
    const struct nn_node *last = net->passes[layers_of(net) - 1].node;

    if (!net->can_learn ||
        (last->layer->loss && net->samples.labels == NULL && net->samples.targets == NULL))
        TRY(base_fail(BASE_ERR_INTERNAL, "a backward without a training forward with labels"));
    for (int j = layers_of(net) - 1; j >= 0; j--) {
        double began = now(net);

        TRY(backward_layer(net, j, scale));
        if (net->times != NULL)
            net->times[j].backward += now(net) - began;
        tell_ready(net, net->passes[j].node, ready);
    }
out:
    return st;
}

/* ---- looking in ---- */

int nn_net_last(const struct nn_net *net)
{
    return net->setup.first + layers_of(net) - 1;
}

base_status nn_net_output(const struct nn_net *net, int index, int sample, float *values)
{
    int j = index - net->setup.first;
    const struct nn_node *node;
    struct nn_shape shape;
    const float *from;

    if (j < 0 || j >= layers_of(net) || sample < 0 || sample >= net->n)
        return base_fail(BASE_ERR_INTERNAL, "no output of layer %d, sample %d here", index, sample);
    node = net->passes[j].node;
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

    if (j >= 0 && j < layers_of(net))
        net->hooks[j] = (struct hook){hook, context};
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
                                    .values = at(net, planned[i].values),
                                    .gradients = at(net, planned[i].gradients)};
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
