/* SPDX-License-Identifier: MIT */
#include "cli/bench_kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu_level.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "nn/conv/kernelplan.h"
#include "nn/conv/trial.h"
#include "nn/threads.h"
#include "nn/zoo.h"

static double estimate_of(const struct nn_conv *conv, const struct nn_conv_shape *shape)
{
    return conv->cost != NULL ? conv->cost(shape, base_cpu_level()) : NAN;
}

static json_t *time_json(const struct nn_trial_time *time, const struct nn_conv_shape *shape)
{
    double estimate = estimate_of(time->conv, shape);

    return json_pack("{s:s, s:f, s:o, s:f}", "kernel", time->conv->name, "seconds", time->seconds,
                     "estimate", isnan(estimate) ? json_null() : json_real(estimate), "error",
                     time->error);
}

static void print_times(const struct nn_planned *layer, const char *shape,
                        const struct nn_trial_time *times, int count)
{
    printf("%s: %s\n", layer->node->name, shape);
    for (int i = 0; i < count; i++)
        printf("  %c %-12s %10.3f ms  estimated %10.3f ms  error %.1e\n",
               times[i].conv == layer->conv ? '*' : ' ', times[i].conv->name,
               1e3 * times[i].seconds, 1e3 * estimate_of(times[i].conv, &layer->shape),
               times[i].error);
}

/* Tries the layer's shape unless an earlier layer had it. */
static base_status try_layer(const struct cli_bench_kernels *setup, const struct nn_planned *layer,
                             json_t *seen, json_t *list)
{
    base_status st = BASE_OK;
    struct nn_trial_time times[NN_TRIAL_MOST];
    const struct nn_trial_effort effort = {.rounds = setup->rounds, .seconds = INFINITY};
    char *shape = nn_conv_shape_text(&layer->shape);
    json_t *candidates = json_array();
    int count = 0;

    if (json_object_get(seen, shape) != NULL)
        goto out;
    json_object_set_new(seen, shape, json_true());
    base_progress(false, "timing kernels: %s", layer->node->name);
    TRY(nn_trial(&layer->shape, layer->node, effort, times, &count));
    base_progress_clear();
    for (int i = 0; i < count; i++)
        json_array_append_new(candidates, time_json(&times[i], &layer->shape));
    json_array_append_new(list,
                          json_pack("{s:s, s:s, s:s, s:O}", "layer", layer->node->name, "shape",
                                    shape, "chosen", layer->conv->name, "candidates", candidates));
    if (!setup->json)
        print_times(layer, shape, times, count);
out:
    json_decref(candidates);
    base_free(shape);
    return st;
}

static base_status try_graph(const struct cli_bench_kernels *setup, const struct nn_graph *graph,
                             json_t *list)
{
    base_status st = BASE_OK;
    const struct nn_setup net = {.n_max = setup->batch, .training = !setup->forward};
    int count = 0;
    struct nn_planned *layers = nn_kernelplan_layers(graph, &net, &count);
    json_t *seen = json_object();

    for (int i = 0; i < count; i++)
        TRY(try_layer(setup, &layers[i], seen, list));
out:
    json_decref(seen);
    base_free(layers);
    return st;
}

base_status cli_bench_kernels(const struct cli_bench_kernels *setup)
{
    base_status st = BASE_OK;
    struct nn_graph *graph = NULL;
    char *text = NULL;
    json_t *list = json_array(), *json = NULL;
    int threads = nn_threads_set(setup->threads);

    TRY(nn_model_text(setup->model, &text));
    TRY(nn_graph_new(text, setup->model, setup->input, setup->classes, &graph));
    TRY(try_graph(setup, graph, list));
    json = json_pack("{s:i, s:i, s:i, s:s, s:O}", "schema", 1, "batch", setup->batch, "threads",
                     threads, "level", base_cpu_level_name(base_cpu_level()), "shapes", list);
    if (setup->json)
        TRY(base_json_print(json));
out:
    json_decref(json);
    json_decref(list);
    nn_graph_free(graph);
    base_free(text);
    return st;
}
