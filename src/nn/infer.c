/* SPDX-License-Identifier: MIT */
#include "nn/infer.h"

#include "base/mem.h"
#include "nn/net.h"

struct nn_infer {
    const struct nn_graph *graph;
    struct nn_infer_setup setup;
    char *kernels;
};

struct nn_lane {
    struct nn_net *net;
    int loss, outputs; /* the last layer, and how many values it gives */
};

base_status nn_infer_new(const struct nn_graph *graph, const struct nn_infer_setup *setup,
                         struct nn_infer **infer_p)
{
    struct nn_infer *infer = base_calloc(1, sizeof *infer);

    *infer = (struct nn_infer){.graph = graph, .setup = *setup};
    if (setup->kernels != NULL)
        infer->setup.kernels = infer->kernels = base_strdup(setup->kernels);
    *infer_p = infer;
    return BASE_OK;
}

void nn_infer_free(struct nn_infer *infer)
{
    if (infer == NULL)
        return;
    base_free(infer->kernels);
    base_free(infer);
}

base_status nn_lane_new(const struct nn_infer *infer, struct nn_lane **lane_p)
{
    base_status st = BASE_OK;
    struct nn_lane *lane = base_calloc(1, sizeof *lane);

    *lane_p = NULL;
    lane->loss = nn_graph_layers(infer->graph) - 1;
    lane->outputs = nn_graph_node(infer->graph, lane->loss)->out.c;
    TRY(nn_net_new(infer->graph,
                   &(struct nn_setup){.n_max = infer->setup.n_max,
                                      .kernels = infer->setup.kernels,
                                      .weights = (float *)(uintptr_t)infer->setup.weights,
                                      .statistics = (float *)(uintptr_t)infer->setup.statistics},
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
