/* SPDX-License-Identifier: MIT
 *
 * An nn_infer is a view of the model made for answering: batch norms folded, dropout gone,
 * convolutions with their tails and prepared weights (nn/conv/answer.h). A lane is a network of
 * that view (nn/net.h), which owns activations and scratch memory, and a team of threads; what it
 * reads of the view and its weights never changes, so lanes need no lock.
 */
#include "nn/infer.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/team.h"
#include "nn/conv/answer.h"
#include "nn/fold.h"
#include "nn/threads.h"

struct nn_infer {
    struct nn_fold fold;
    struct nn_graph *graph;        /* a view of the folded one */
    struct nn_conv_answer **convs; /* (layers); NULL for other layers */
    float *weights;                /* of the layers whose kernels prepare nothing */
    int n_max;
    char *kernels;
};

struct nn_lane {
    struct base_team *team;
    struct nn_net *net;
    int loss, outputs; /* the last layer, and how many values it gives */
};

static base_status make_nodes(struct nn_infer *infer, struct nn_node *nodes, const char *kernels)
{
    base_status st = BASE_OK;
    const int layers = nn_graph_layers(infer->graph);

    for (int i = 0; i < layers; i++)
        if (strcmp(nodes[i].layer->name, "dropout") == 0)
            nodes[i].identity = true;
    for (int i = 0; i < layers; i++)
        if (nodes[i].layer == &nn_layer_conv)
            TRY(nn_conv_answer_make(nodes, i, layers - i, infer->n_max, infer->fold.weights,
                                    kernels, &infer->convs[i]));
out:
    return st;
}

/* The weights that are still read as they are; the rest goes. */
static base_status keep_weights(struct nn_infer *infer)
{
    base_status st = BASE_OK;

    nn_graph_place(infer->graph);
    TRY(base_tensor(nn_graph_weight_floats(infer->graph), sizeof(float), "weights",
                    &infer->weights));
    for (int i = 0; i < nn_graph_layers(infer->graph); i++) {
        const struct nn_node *is = nn_graph_node(infer->graph, i);
        const struct nn_node *was = nn_graph_node(infer->fold.graph, i);

        for (int t = 0; t < is->params; t++)
            memcpy(infer->weights + is->param[t].offset, infer->fold.weights + was->param[t].offset,
                   is->param[t].floats * sizeof(float));
    }
    base_free(infer->fold.weights);
    infer->fold.weights = NULL;
out:
    return st;
}

/* "features.0=direct features.8=patches,winograd4@9 …" */
static char *name_kernels(const struct nn_infer *infer)
{
    struct base_str text = {0};

    for (int i = 0; i < nn_graph_layers(infer->graph); i++) {
        const struct nn_conv_answer *c = infer->convs[i];

        if (c == NULL)
            continue;
        base_str_add(&text, "%s%s=%s", text.length > 0 ? " " : "",
                     nn_graph_node(infer->graph, i)->name, c->choice[0].conv->name);
        if (c->choices > 1)
            base_str_add(&text, ",%s@%d", c->choice[1].conv->name, c->choice[1].from);
    }
    return base_str_take(&text);
}

base_status nn_infer_new(const struct nn_graph *graph, const struct nn_infer_setup *setup,
                         struct nn_infer **infer_p)
{
    base_status st = BASE_OK;
    struct nn_infer *infer = base_calloc(1, sizeof *infer);
    struct nn_node *nodes;

    *infer_p = NULL;
    if (setup->weights == NULL || setup->statistics == NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "a model to answer with has no weights"));
    if (setup->n_max < 1)
        TRY(base_fail(BASE_ERR_USAGE, "a batch of %d samples; use at least 1", setup->n_max));
    infer->n_max = setup->n_max;
    TRY(nn_fold_init(&infer->fold, graph, setup->weights, setup->statistics));
    infer->graph = nn_graph_view(infer->fold.graph, &nodes);
    infer->convs = base_calloc((size_t)nn_graph_layers(graph), sizeof(void *));
    TRY(make_nodes(infer, nodes, setup->kernels));
    TRY(keep_weights(infer));
    infer->kernels = name_kernels(infer);
    *infer_p = infer;
    infer = NULL;
out:
    nn_infer_free(infer);
    return st;
}

void nn_infer_free(struct nn_infer *infer)
{
    if (infer == NULL)
        return;
    for (int i = 0; infer->convs != NULL && i < nn_graph_layers(infer->graph); i++)
        nn_conv_answer_free(infer->convs[i]);
    base_free(infer->convs);
    base_free(infer->kernels);
    base_free(infer->weights);
    nn_graph_free(infer->graph);
    nn_fold_fini(&infer->fold);
    base_free(infer);
}

const char *nn_infer_kernels(const struct nn_infer *infer)
{
    return infer->kernels;
}

struct nn_infer_cost nn_infer_cost(const struct nn_infer *infer, int n)
{
    struct nn_infer_cost cost = {0};

    for (int i = 0; i < nn_graph_layers(infer->graph); i++) {
        const struct nn_node *node = nn_graph_node(infer->graph, i);
        const struct nn_conv_choice *choice =
            infer->convs[i] != NULL ? nn_conv_answer_choice(infer->convs[i], n) : NULL;
        double weights = 0;

        for (int t = 0; t < node->params; t++)
            weights += (double)node->param[t].floats;
        cost.nominal_flops += n * node->flops;
        if (choice != NULL && choice->prepared != NULL) {
            weights = (double)choice->floats;
            cost.executed_flops += 2.0 * n * choice->uses * weights;
        } else {
            cost.executed_flops += n * node->flops;
        }
        cost.weight_bytes += weights * sizeof(float);
    }
    return cost;
}

base_status nn_lane_new(const struct nn_infer *infer, struct nn_lane **lane_p)
{
    base_status st = BASE_OK;
    struct nn_lane *lane = base_calloc(1, sizeof *lane);

    *lane_p = NULL;
    lane->loss = nn_graph_layers(infer->graph) - 1;
    lane->outputs = nn_graph_node(infer->graph, lane->loss)->out.c;
    TRY(base_team_new(nn_threads(), &lane->team));
    TRY(nn_net_new(infer->graph,
                   &(struct nn_setup){.n_max = infer->n_max,
                                      .team = lane->team,
                                      .weights = infer->weights,
                                      .statistics = infer->fold.statistics},
                   &lane->net));
    *lane_p = lane;
    lane = NULL;
out:
    nn_lane_free(lane);
    return st;
}

void nn_lane_free(struct nn_lane *lane)
{
    if (lane == NULL)
        return;
    nn_net_free(lane->net);
    base_team_free(lane->team);
    base_free(lane);
}

base_status nn_lane_run(struct nn_lane *lane, int n, const float *x, float *y)
{
    base_status st = BASE_OK;
    struct nn_outcome outcome;

    TRY(nn_net_forward(lane->net, &(struct nn_batch){.n = n, .x = x}, false, &outcome));
    for (int i = 0; i < n; i++)
        TRY(nn_net_output(lane->net, lane->loss, i, y + (size_t)i * (size_t)lane->outputs));
out:
    return st;
}

void nn_lane_profile(struct nn_lane *lane, struct nn_layer_time *times)
{
    nn_net_profile(lane->net, times);
}

uint64_t nn_lane_activation_bytes(const struct nn_lane *lane)
{
    return nn_net_activation_bytes(lane->net);
}
