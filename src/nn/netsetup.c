/* SPDX-License-Identifier: MIT
 *
 * Makes a network: plans its memory and opens its layers, after which all sizes are known; then
 * allocates and fills one nn_pass a layer and batch in flight with pointers. nn_net_memory stops
 * before the second half, so that an estimate and what is allocated cannot differ. Owns the
 * blocks of activations, the scratch memory, and the flat buffers that the caller did not bring.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/conv/kernelplan.h"
#include "nn/fuse.h"
#include "nn/net_private.h"

/* ---- sizes ---- */

static base_status plan(const struct nn_graph *graph, struct nn_net *net)
{
    base_status st = BASE_OK;
    struct nn_setup *setup = &net->setup;
    int layers = nn_graph_layers(graph);

    net->graph = graph;
    if (setup->last == 0)
        setup->last = layers;
    if (setup->in_flight == 0)
        setup->in_flight = 1;
    if (!setup->apart && !setup->keep_outputs && setup->first >= 0 && setup->last <= layers)
        net->graph = net->view = nn_graph_fuse(graph, setup->first, setup->last);
    TRY(nn_plan_new(net->graph,
                    &(struct nn_plan_setup){.first = setup->first,
                                            .last = setup->last,
                                            .n = setup->n_max,
                                            .training = setup->training,
                                            .in_flight = setup->in_flight,
                                            .keep_outputs = setup->keep_outputs,
                                            .input_gradient = setup->input_gradient,
                                            .split = setup->split},
                    &net->plan));
    net->weight_range = nn_graph_weights_of(graph, setup->first, setup->last);
    net->stat_range = nn_graph_stats_of(graph, setup->first, setup->last);
    if (setup->lender.weights || setup->lender.gradients || setup->await.range != NULL)
        net->groups = nn_graph_groups(graph, setup->first, setup->last, &net->group_count);
out:
    return st;
}

static base_status open_layer(struct nn_net *net, int j, struct base_str *kernels)
{
    base_status st = BASE_OK;
    const struct nn_node *node = nn_graph_node(net->graph, net->setup.first + j);
    char *kernel = nn_kernelplan_kernel(net->setup.kernels, node);
    struct nn_open open = {.n_max = net->setup.n_max,
                           .training = net->setup.training,
                           .want_dx = net->plan->nodes[j].dx != NN_PLAN_NONE,
                           .kernel = kernel};

    if (node->layer->open == NULL)
        goto out;
    TRY(node->layer->open(node, &open, &net->states[j]));
    if (open.scratch_bytes > net->scratch_bytes)
        net->scratch_bytes = open.scratch_bytes;
    if (open.chosen != NULL)
        base_str_add(kernels, "%s%s=%s", kernels->length ? " " : "", node->name, open.chosen);
out:
    base_free(kernel);
    return base_prefix(st, "layer %s", node->name);
}

/* Scratch memory and the names of the kernels are known then. */
static base_status open_layers(struct nn_net *net)
{
    base_status st = BASE_OK;
    struct base_str kernels = {0};

    net->states = base_calloc((size_t)nn_net_layers(net), sizeof *net->states);
    for (int j = 0; j < nn_net_layers(net); j++)
        TRY(open_layer(net, j, &kernels));
    net->kernels = base_str_take(&kernels);
out:
    base_str_fini(&kernels);
    return st;
}

static struct nn_memory memory_of(const struct nn_net *net)
{
    const struct nn_setup *setup = &net->setup;
    uint64_t weights = net->weight_range.count * sizeof(float);
    uint64_t a_sample =
        sizeof *net->piece->labels + sizeof *net->piece->predicted + sizeof *net->piece->ids;

    return (struct nn_memory){
        .weights = setup->lender.weights ? 0 : weights,
        .gradients = setup->training && !setup->lender.gradients ? weights : 0,
        .statistics = net->stat_range.count * sizeof(float),
        .activations =
            net->plan->total + (uint64_t)setup->in_flight * (uint64_t)setup->n_max * a_sample,
        .scratch = net->scratch_bytes,
    };
}

base_status nn_net_memory(const struct nn_graph *graph, const struct nn_setup *setup,
                          struct nn_memory *memory_p)
{
    base_status st = BASE_OK;
    struct nn_net *net = base_calloc(1, sizeof *net);
    char *kernels = NULL;

    *memory_p = (struct nn_memory){0};
    net->setup = *setup;
    TRY(plan(graph, net));
    if (setup->kernels == NULL) {
        TRY(nn_kernelplan_make(graph, setup, (struct nn_kernelplan_wish){0}, &kernels));
        net->setup.kernels = kernels;
    }
    TRY(open_layers(net));
    *memory_p = memory_of(net);
out:
    nn_net_free(net);
    base_free(kernels);
    return st;
}

uint64_t nn_memory_total(const struct nn_memory *memory, int slots)
{
    return memory->weights * (1 + (uint64_t)slots) + memory->gradients + memory->statistics +
           memory->activations + memory->scratch;
}

/* ---- pointers ---- */

float *nn_net_at(const struct nn_net *net, const struct nn_piece *piece, int buffer)
{
    size_t kept = net->plan->kept, offset;

    if (buffer < 0)
        return NULL;
    offset = net->plan->buffers[buffer].offset;
    return (float *)(void *)(offset < kept ? piece->block + offset : net->shared + (offset - kept));
}

void nn_net_point_weights(struct nn_piece *piece, int first, int last, const float *weights,
                          size_t from)
{
    for (int j = first; j < last; j++)
        for (int t = 0; t < piece->passes[j].node->params; t++)
            piece->passes[j].param[t] =
                weights != NULL ? weights + (piece->passes[j].node->param[t].offset - from) : NULL;
}

void nn_net_point_gradients(struct nn_piece *piece, int first, int last, float *gradients,
                            size_t from)
{
    for (int j = first; j < last; j++)
        for (int t = 0; t < piece->passes[j].node->params; t++)
            piece->passes[j].dparam[t] =
                gradients != NULL ? gradients + (piece->passes[j].node->param[t].offset - from)
                                  : NULL;
}

static void point(struct nn_net *net, struct nn_piece *piece, int j)
{
    const struct nn_plan_node *places = &net->plan->nodes[j];
    const struct nn_node *node = nn_graph_node(net->graph, net->setup.first + j);
    struct nn_pass *pass = &piece->passes[j];

    pass->node = node;
    pass->state = net->states[j];
    pass->x = nn_net_at(net, piece, places->x);
    pass->y = nn_net_at(net, piece, places->y);
    pass->other = nn_net_at(net, piece, places->other);
    pass->dy = nn_net_at(net, piece, places->dy);
    pass->dx = nn_net_at(net, piece, places->dx);
    pass->dother = nn_net_at(net, piece, places->dother);
    pass->keep = nn_net_at(net, piece, places->keep);
    for (int t = 0; t < node->stats; t++)
        pass->stat[t] = net->statistics + (node->stat[t].offset - net->stat_range.from);
    pass->scratch = net->scratch;
    pass->reduce = net->setup.reduce;
    pass->team = net->setup.team;
    pass->samples = &piece->samples;
    pass->predicted = piece->predicted;
}

void nn_net_gradients_at(struct nn_net *net, float *gradients)
{
    net->gradients = gradients;
    for (int i = 0; i < net->setup.in_flight; i++)
        nn_net_point_gradients(&net->pieces[i], 0, nn_net_layers(net), gradients,
                               net->weight_range.from);
}

void nn_net_weights_at(struct nn_net *net, float *weights)
{
    net->weights = weights;
    for (int i = 0; i < net->setup.in_flight; i++)
        nn_net_point_weights(&net->pieces[i], 0, nn_net_layers(net), weights,
                             net->weight_range.from);
}

/* ---- allocated ---- */

/* The caller's buffer, or an own one of `bytes`. */
static base_status flat_buffer(float *given, uint64_t bytes, const char *what, float **own_p,
                               float **buffer_p)
{
    base_status st = BASE_OK;

    if (given == NULL)
        TRY(base_tensor(bytes, 1, what, own_p));
    *buffer_p = given != NULL ? given : *own_p;
out:
    return st;
}

static base_status allocate_buffers(struct nn_net *net)
{
    base_status st = BASE_OK;
    const struct nn_setup *setup = &net->setup;
    const struct nn_memory memory = memory_of(net);

    if (!setup->lender.weights)
        TRY(flat_buffer(setup->weights, memory.weights, "weights", &net->own_weights,
                        &net->weights));
    if (setup->training && !setup->lender.gradients)
        TRY(flat_buffer(setup->gradients, memory.gradients, "gradients", &net->own_gradients,
                        &net->gradients));
    TRY(flat_buffer(setup->statistics, memory.statistics, "statistics", &net->own_statistics,
                    &net->statistics));
    TRY(base_tensor(net->scratch_bytes, 1, "the kernels' working memory", &net->scratch));
out:
    return st;
}

static base_status allocate_piece(struct nn_net *net, struct nn_piece *piece)
{
    base_status st = BASE_OK;
    size_t n = (size_t)net->setup.n_max, layers = (size_t)nn_net_layers(net);

    piece->passes = base_calloc(layers, sizeof *piece->passes);
    TRY(base_tensor(net->plan->kept, 1, "activations", &piece->block));
    TRY(base_tensor(n, sizeof *piece->labels, "labels", &piece->labels));
    TRY(base_tensor(n, sizeof *piece->predicted, "predictions", &piece->predicted));
    TRY(base_tensor(n, sizeof *piece->ids, "sample ids", &piece->ids));
    for (int j = 0; j < nn_net_layers(net); j++)
        point(net, piece, j);
out:
    return st;
}

base_status nn_net_new(const struct nn_graph *graph, const struct nn_setup *setup,
                       struct nn_net **net_p)
{
    base_status st = BASE_OK;
    struct nn_net *net = base_calloc(1, sizeof *net);

    *net_p = NULL;
    net->setup = *setup;
    TRY(plan(graph, net));
    TRY(open_layers(net));
    TRY(allocate_buffers(net));
    TRY(base_tensor(net->plan->bytes - net->plan->kept, 1, "activations", &net->shared));
    net->pieces = base_calloc((size_t)net->setup.in_flight, sizeof *net->pieces);
    for (int i = 0; i < net->setup.in_flight; i++)
        TRY(allocate_piece(net, &net->pieces[i]));
    net->piece = net->pieces;
    net->hooks = base_calloc((size_t)nn_net_layers(net), sizeof *net->hooks);
    nn_net_weights_at(net, net->weights);
    nn_net_gradients_at(net, net->gradients);
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
    for (int j = 0; net->states != NULL && j < nn_net_layers(net); j++) {
        const struct nn_layer *layer = nn_graph_node(net->graph, net->setup.first + j)->layer;

        if (layer->close != NULL)
            layer->close(net->states[j]);
    }
    for (int i = 0; net->pieces != NULL && i < net->setup.in_flight; i++) {
        base_free(net->pieces[i].passes);
        base_free(net->pieces[i].block);
        base_free(net->pieces[i].labels);
        base_free(net->pieces[i].predicted);
        base_free(net->pieces[i].ids);
    }
    base_free(net->pieces);
    base_free(net->states);
    base_free(net->hooks);
    base_free(net->shared);
    base_free(net->scratch);
    base_free(net->own_weights);
    base_free(net->own_gradients);
    base_free(net->own_statistics);
    base_free(net->groups);
    base_free(net->kernels);
    nn_plan_free(net->plan);
    nn_graph_free(net->view);
    base_free(net);
}

/* ---- questions ---- */

float *nn_net_weights(struct nn_net *net)
{
    return net->weights;
}

float *nn_net_gradients(struct nn_net *net)
{
    return net->gradients;
}

float *nn_net_statistics(struct nn_net *net)
{
    return net->statistics;
}

uint64_t nn_net_activation_bytes(const struct nn_net *net)
{
    return net->plan->total;
}

const char *nn_net_kernels(const struct nn_net *net)
{
    return net->kernels;
}
