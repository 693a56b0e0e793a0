/* SPDX-License-Identifier: MIT
 *
 * Which floats of a model's flat buffers belong to which layers, and their starting values. The
 * tensors lie in the order of the layers, so those of a range of layers are a range of floats. No
 * state; any thread.
 */
#include <string.h>

#include "base/mem.h"
#include "nn/graph.h"

enum { GROUP_FLOATS = 1 << 14 };

/* Where the tensors of layer `index` and of those after it begin in the weight buffer. */
static size_t weights_begin(const struct nn_graph *graph, int index)
{
    for (int i = index; i < nn_graph_layers(graph); i++)
        if (nn_graph_node(graph, i)->params > 0)
            return nn_graph_node(graph, i)->param[0].offset;
    return nn_graph_weight_floats(graph);
}

static size_t stats_begin(const struct nn_graph *graph, int index)
{
    for (int i = index; i < nn_graph_layers(graph); i++)
        if (nn_graph_node(graph, i)->stats > 0)
            return nn_graph_node(graph, i)->stat[0].offset;
    return nn_graph_stat_floats(graph);
}

struct nn_range nn_graph_weights_of(const struct nn_graph *graph, int first, int last)
{
    size_t from = weights_begin(graph, first);

    return (struct nn_range){from, weights_begin(graph, last) - from};
}

struct nn_range nn_graph_stats_of(const struct nn_graph *graph, int first, int last)
{
    size_t from = stats_begin(graph, first);

    return (struct nn_range){from, stats_begin(graph, last) - from};
}

struct nn_group *nn_graph_groups(const struct nn_graph *graph, int first, int last, int *count_p)
{
    struct nn_group *groups = base_calloc((size_t)(last - first), sizeof *groups);
    int count = 0;

    for (int i = first; i < last; i++) {
        const struct nn_node *node = nn_graph_node(graph, i);
        struct nn_group *group;

        if (node->params == 0)
            continue;
        if (count == 0 ||
            (groups[count - 1].weights.count >= GROUP_FLOATS && node->param[0].order != NN_VECTOR))
            groups[count++].first = i;
        group = &groups[count - 1];
        group->last = i + 1;
        group->weights = nn_graph_weights_of(graph, group->first, group->last);
    }
    *count_p = count;
    return groups;
}

static bool in_range(struct nn_range range, size_t offset)
{
    return offset >= range.from && offset < range.from + range.count;
}

void nn_graph_start_layers(const struct nn_graph *graph, int first, int last, uint64_t seed,
                           float *weights, float *stats)
{
    struct nn_range w = nn_graph_weights_of(graph, first, last);
    struct nn_range s = nn_graph_stats_of(graph, first, last);

    memset(weights, 0, w.count * sizeof *weights);
    memset(stats, 0, s.count * sizeof *stats);
    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        if (in_range(w, t->offset))
            nn_tensor_start(t, seed, (uint32_t)i, weights + (t->offset - w.from));
    }
    for (size_t i = 0; i < nn_graph_stats(graph); i++) {
        const struct nn_tensor *t = nn_graph_stat(graph, i);

        if (in_range(s, t->offset))
            nn_tensor_start(t, seed, (uint32_t)i, stats + (t->offset - s.from));
    }
}

void nn_graph_start(const struct nn_graph *graph, uint64_t seed, float *weights, float *stats)
{
    nn_graph_start_layers(graph, 0, nn_graph_layers(graph), seed, weights, stats);
}
