/* SPDX-License-Identifier: MIT
 *
 * Folding: with s = weight / sqrt(running_var + eps) of a batch norm,
 *     s (w x + b - running_mean) + bias  =  (s w) x + (s (b - running_mean) + bias),
 * output channel by output channel. No state; any thread.
 */
#include "nn/fold.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "nn/batchnorm.h"

/* The node whose output enters `bn` and nothing else, if it can take the batch norm over; -1 if
 * not. A `save` in between gives the tensor a name, and others may read it. */
static int partner(const struct nn_graph *graph, int bn)
{
    int i = bn - 1;

    if (strcmp(nn_graph_node(graph, bn)->layer->name, "bn") != 0)
        return -1;
    while (i >= 0 && nn_graph_node(graph, i)->identity &&
           nn_graph_node(graph, i)->layer->naming == NN_NAMING_NONE)
        i--;
    return i >= 0 && nn_graph_node(graph, i)->layer->bias != NULL ? i : -1;
}

static void forget_tensors(struct nn_node *node)
{
    memset(node->param, 0, sizeof node->param);
    memset(node->stat, 0, sizeof node->stat);
    node->params = node->stats = 0;
}

/* The layer with a bias, described anew; its configuration and tensors' names are the fold's. */
static base_status give_bias(struct nn_fold *fold, struct nn_node *node)
{
    const size_t bytes = node->layer->config_size;
    void *config = base_calloc(1, bytes);

    memcpy(config, node->config, bytes);
    fold->configs[node->index] = node->config = config;
    *node->layer->bias(config) = true;
    forget_tensors(node);
    return node->layer->describe(node);
}

static base_status fold_nodes(struct nn_fold *fold, const struct nn_graph *graph,
                              struct nn_node *nodes)
{
    base_status st = BASE_OK;

    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const int with = partner(graph, i);

        if (with < 0)
            continue;
        TRY(give_bias(fold, &nodes[with]));
        forget_tensors(&nodes[i]);
        nodes[i].keep_fixed = nodes[i].keep_bytes = 0;
        nodes[i].flops = 0;
        nodes[i].identity = true;
    }
out:
    return st;
}

/* ---- values ---- */

struct buffers {
    const float *weights, *statistics; /* of the model as it was */
};

/* Factor and addend of channel c of a batch norm. */
static void affine(const struct nn_node *bn, const struct buffers *from, int c, double *factor_p,
                   double *addend_p)
{
    const struct nn_bn_config *config = bn->config;
    const double mean = (double)from->statistics[bn->stat[0].offset + (size_t)c];
    const double variance = (double)from->statistics[bn->stat[1].offset + (size_t)c];

    *factor_p =
        (double)from->weights[bn->param[0].offset + (size_t)c] / sqrt(variance + config->eps);
    *addend_p = (double)from->weights[bn->param[1].offset + (size_t)c] - mean * *factor_p;
}

/* `was` and `bn` of the model as it was, `is` of the folded one. */
static void fold_values(const struct nn_node *was, const struct nn_node *bn,
                        const struct nn_node *is, const struct buffers *from, float *weights)
{
    const int outputs = is->param[0].dims[0];
    double *factors = base_calloc((size_t)outputs, sizeof *factors);
    float *bias = weights + is->param[1].offset;

    for (int o = 0; o < outputs; o++) {
        const double b =
            was->params > 1 ? (double)from->weights[was->param[1].offset + (size_t)o] : 0;
        double addend;

        affine(bn, from, o, &factors[o], &addend);
        bias[o] = (float)(factors[o] * b + addend);
    }
    nn_tensor_scale(&is->param[0], factors, from->weights + was->param[0].offset,
                    weights + is->param[0].offset);
    base_free(factors);
}

static void copy_values(const struct nn_node *was, const struct nn_node *is,
                        const struct buffers *from, const struct nn_fold *fold)
{
    for (int t = 0; t < is->params; t++)
        memcpy(fold->weights + is->param[t].offset, from->weights + was->param[t].offset,
               is->param[t].floats * sizeof(float));
    for (int t = 0; t < is->stats; t++)
        memcpy(fold->statistics + is->stat[t].offset, from->statistics + was->stat[t].offset,
               is->stat[t].floats * sizeof(float));
}

static base_status fill(struct nn_fold *fold, const struct nn_graph *graph, struct buffers from)
{
    base_status st = BASE_OK;

    TRY(base_tensor(nn_graph_weight_floats(fold->graph), sizeof(float), "folded weights",
                    &fold->weights));
    TRY(base_tensor(nn_graph_stat_floats(fold->graph), sizeof(float), "statistics",
                    &fold->statistics));
    for (int i = 0; i < nn_graph_layers(graph); i++)
        if (fold->configs[i] == NULL)
            copy_values(nn_graph_node(graph, i), nn_graph_node(fold->graph, i), &from, fold);
    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const int with = partner(graph, i);

        if (with >= 0)
            fold_values(nn_graph_node(graph, with), nn_graph_node(graph, i),
                        nn_graph_node(fold->graph, with), &from, fold->weights);
    }
out:
    return st;
}

base_status nn_fold_init(struct nn_fold *fold, const struct nn_graph *graph, const float *weights,
                         const float *statistics)
{
    base_status st = BASE_OK;
    struct nn_node *nodes;

    *fold = (struct nn_fold){0};
    fold->graph = nn_graph_view(graph, &nodes);
    fold->configs = base_calloc((size_t)nn_graph_layers(graph), sizeof *fold->configs);
    TRY(fold_nodes(fold, graph, nodes));
    nn_graph_place(fold->graph);
    TRY(fill(fold, graph, (struct buffers){.weights = weights, .statistics = statistics}));
out:
    return st;
}

void nn_fold_fini(struct nn_fold *fold)
{
    for (int i = 0; fold->configs != NULL && i < nn_graph_layers(fold->graph); i++) {
        const struct nn_node *node = nn_graph_node(fold->graph, i);

        for (int t = 0; fold->configs[i] != NULL && t < node->params; t++)
            base_free(node->param[t].name);
        base_free(fold->configs[i]);
    }
    base_free(fold->configs);
    base_free(fold->weights);
    base_free(fold->statistics);
    nn_graph_free(fold->graph);
    *fold = (struct nn_fold){0};
}
