/* covers: src/nn/line.c src/nn/graph.c */
/* SPDX-License-Identifier: MIT
 *
 * Model texts. What is accepted must keep the promises that the rest leans on: shapes that
 * follow each other, tensors inside their buffers, a memory plan, and the same model again from
 * its own text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/plan.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void walk(const struct nn_graph *graph)
{
    size_t end = 0;
    int index;

    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const struct nn_node *node = nn_graph_node(graph, i);

        require(node->in.c > 0 && node->in.h > 0 && node->in.w > 0);
        require(node->out.c > 0 && node->out.h > 0 && node->out.w > 0);
        require(nn_graph_find(graph, node->name, &index) == BASE_OK && index == i);
        require(i == 0 || node->in.c == nn_graph_node(graph, i - 1)->out.c);
        require(node->layer->loss == (i + 1 == nn_graph_layers(graph)));
        require(node->named <= i);
    }
    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        require(t->offset >= end && t->floats >= t->values && t->values > 0);
        end = t->offset + t->floats;
    }
    require(end <= nn_graph_weight_floats(graph));
    for (size_t i = 0; i < nn_graph_stats(graph); i++)
        require(nn_graph_stat(graph, i)->offset + nn_graph_stat(graph, i)->floats <=
                nn_graph_stat_floats(graph));
    require(nn_graph_find(graph, "no such layer", &index) != BASE_OK && index == -1);
    require(nn_graph_flops(graph) >= 0 && nn_graph_classes(graph) > 0);
}

/* What a model is cut into covers its weights, and has a plan of its memory. */
static void cut(const struct nn_graph *graph)
{
    int layers = nn_graph_layers(graph), middle = layers / 2, count;
    struct nn_plan_setup setup = {.last = layers, .n = 2, .training = true, .in_flight = 2};
    struct nn_group *groups = nn_graph_groups(graph, 0, layers, &count);
    size_t floats = 0;
    struct nn_plan *plan;

    for (int i = 0; i < count; i++)
        floats += groups[i].weights.count;
    base_free(groups);
    require(floats == nn_graph_weight_floats(graph));
    require(nn_graph_weights_of(graph, 0, middle).count +
                nn_graph_weights_of(graph, middle, layers).count ==
            floats);
    if (nn_plan_new(graph, &setup, &plan) == BASE_OK)
        require(plan->kept <= plan->bytes && plan->bytes <= plan->total);
    nn_plan_free(plan);
}

/* Small models only: starting values take memory. */
static void start(const struct nn_graph *graph)
{
    float *weights, *statistics;

    if (nn_graph_weight_floats(graph) > 1 << 12 || nn_graph_stat_floats(graph) > 1 << 12)
        return;
    weights = base_calloc(nn_graph_weight_floats(graph), sizeof *weights);
    statistics = base_calloc(nn_graph_stat_floats(graph), sizeof *statistics);
    nn_graph_start(graph, 1, weights, statistics);
    base_free(weights);
    base_free(statistics);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct nn_graph *graph, *again;
    char *text = base_calloc(count + 1, 1);

    if (count > 0)
        memcpy(text, bytes, count);
    if (nn_graph_new(text, "fuzz", (struct nn_shape){0}, 0, &graph) == BASE_OK) {
        walk(graph);
        cut(graph);
        start(graph);
        require(nn_graph_new(nn_graph_text(graph), "again", nn_graph_input(graph),
                             nn_graph_classes(graph), &again) == BASE_OK);
        require(nn_graph_parameters(again) == nn_graph_parameters(graph));
        nn_graph_free(again);
        nn_graph_free(graph);
    } else {
        require(graph == NULL && base_message()[0] != '\0');
    }
    base_free(text);
    return 0;
}
