/* SPDX-License-Identifier: MIT */
#include "nn/closed.h"

#include "nn/graph.h"

uint64_t nn_closed_memory(const struct nn_closed *closed, const struct nn_graph *graph, int n)
{
    size_t features = nn_shape_values(nn_graph_input(graph)), sums = 0;

    if (closed == NULL || closed->count(graph, &sums) != BASE_OK)
        return 0;
    return sizeof(double) * (sums + (uint64_t)n * features) +
           sizeof(float) * nn_graph_weight_floats(graph);
}
