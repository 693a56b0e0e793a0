/* SPDX-License-Identifier: MIT
 *
 * Answers to the same batch of made-up images over and over. With --paced, as many as each line of
 * standard input says, so that another program can take turns (bench/inference.py); the first
 * outputs are told, for a comparison.
 */
#include "cli/bench_infer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/weights.h"
#include "nn/infer.h"
#include "nn/threads.h"
#include "nn/zoo.h"
#include "train/measure.h"
#include "train/pace.h"

enum { MAX_BURST = 100000 };

struct bench {
    struct nn_graph *graph;
    struct model_weights weights;
    struct nn_infer *infer;
    struct nn_lane *lane;
    float *x, *y;
    int batch, threads;
    double setup_seconds; /* a server would take so long to start */
};

/* The i-th value of the batch, from -1 to 1; any program can make the same ones. */
static float value(size_t i)
{
    const uint32_t mixed = (uint32_t)i * 2654435761u; /* Knuth's multiplicative hash */

    return (float)(mixed >> 8) / (float)(1 << 23) - 1;
}

static base_status load(struct bench *t, const struct cli_bench_infer *b)
{
    base_status st = BASE_OK;
    char *text = NULL;

    TRY(nn_model_text(b->model, &text));
    TRY(nn_graph_new(text, b->model, b->input, b->classes, &t->graph));
    TRY(model_weights_init(&t->weights, t->graph));
    nn_graph_start(t->graph, 1, t->weights.weights, t->weights.statistics);
    if (b->weights != NULL)
        TRY(model_weights_read(&t->weights, b->weights, false));
out:
    base_free(text);
    return st;
}

static base_status bench_init(struct bench *t, const struct cli_bench_infer *b)
{
    base_status st = BASE_OK;
    size_t values, outputs;
    double began;

    *t = (struct bench){.batch = b->batch, .threads = nn_threads_set(b->threads)};
    TRY(load(t, b));
    began = base_now();
    TRY(nn_infer_new(t->graph,
                     &(struct nn_infer_setup){.weights = t->weights.weights,
                                              .statistics = t->weights.statistics,
                                              .n_max = b->batch,
                                              .kernels = b->kernels},
                     &t->infer));
    TRY(nn_lane_new(t->infer, &t->lane));
    t->setup_seconds = base_now() - began;
    values = (size_t)b->batch * nn_shape_values(nn_graph_input(t->graph));
    outputs = (size_t)nn_graph_node(t->graph, nn_graph_layers(t->graph) - 1)->out.c;
    TRY(base_tensor(values, sizeof *t->x, "the batch", &t->x));
    TRY(base_tensor((size_t)b->batch * outputs, sizeof *t->y, "the answers", &t->y));
    for (size_t i = 0; i < values; i++)
        t->x[i] = value(i);
out:
    return st;
}

static void bench_fini(struct bench *t)
{
    nn_lane_free(t->lane);
    nn_infer_free(t->infer);
    model_weights_fini(&t->weights);
    nn_graph_free(t->graph);
    base_free(t->x);
    base_free(t->y);
}

static base_status answer(struct bench *t, double *seconds_p)
{
    double began = base_now();
    base_status st = nn_lane_run(t->lane, t->batch, t->x, t->y);

    *seconds_p = base_now() - began;
    return st;
}

/* The outputs of the last sample: a sample's place in the batch must not matter. */
static json_t *outputs(const struct bench *t)
{
    const int count = nn_graph_node(t->graph, nn_graph_layers(t->graph) - 1)->out.c;
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_real((double)t->y[(t->batch - 1) * count + i]));
    return list;
}

static base_status print_line(json_t *json)
{
    base_status st = base_json_print(json);

    json_decref(json);
    if (st == BASE_OK && fflush(stdout) != 0)
        st = base_fail(BASE_ERR_IO, "cannot write to standard output: %m");
    return st;
}

struct times {
    double seconds, cpu;
};

/* Prints nothing before the last answer, because a program that reads it would take a core from the
 * next one. */
static base_status burst(struct bench *t, struct times *times, int count)
{
    base_status st = BASE_OK;

    for (int i = 0; i < count; i++) {
        const double cpu = base_process_cpu();

        TRY(answer(t, &times[i].seconds));
        times[i].cpu = base_process_cpu() - cpu;
    }
    for (int i = 0; i < count; i++)
        TRY(print_line(
            json_pack("{s:f, s:f}", "seconds", times[i].seconds, "cpu_seconds", times[i].cpu)));
out:
    return st;
}

static base_status paced(struct bench *t)
{
    base_status st = BASE_OK;
    struct times *times = NULL;
    char line[64];
    double seconds;

    TRY(base_tensor(MAX_BURST, sizeof *times, "times", &times));
    TRY(answer(t, &seconds));
    TRY(print_line(json_pack("{s:b, s:o}", "ready", 1, "outputs", outputs(t))));
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *end;
        const long count = strtol(line, &end, 10);

        if (end == line || *end != '\n' || count < 1 || count > MAX_BURST)
            TRY(base_fail(BASE_ERR_USAGE, "standard input: a line is a number of answers, 1 to %d",
                          MAX_BURST));
        TRY(burst(t, times, (int)count));
    }
out:
    base_free(times);
    return st;
}

static void print(const struct bench *t, const struct train_pace_summary *p, double peak)
{
    const struct nn_infer_cost cost = nn_infer_cost(t->infer, t->batch);

    printf("batch %d, %d threads: median %.3f ms, best %.3f ms; %.0f images/s; nominal %.1f GF/s, "
           "executed %.1f, %.0f %% of the FMA peak of %.1f; %.1f MB of weights, %.1f GB/s; set-up "
           "%.0f ms\nkernels: %s\n",
           t->batch, t->threads, 1e3 * p->median, 1e3 * p->min, t->batch / p->median,
           cost.nominal_flops / p->median / 1e9, cost.executed_flops / p->median / 1e9,
           100 * cost.executed_flops / p->median / peak, peak / 1e9, cost.weight_bytes / 1e6,
           cost.weight_bytes / p->median / 1e9, 1e3 * t->setup_seconds, nn_infer_kernels(t->infer));
}

static json_t *report(const struct bench *t, const struct train_pace_summary *p, double peak)
{
    const struct nn_infer_cost cost = nn_infer_cost(t->infer, t->batch);

    return json_pack(
        "{s:i, s:i, s:i, s:s, s:{s:f, s:f}, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f}", "schema", 1,
        "batch", t->batch, "threads", t->threads, "kernels", nn_infer_kernels(t->infer), "seconds",
        "median", p->median, "min", p->min, "images_per_second", t->batch / p->median,
        "nominal_flops", cost.nominal_flops / p->median, "executed_flops",
        cost.executed_flops / p->median, "peak_flops", peak, "weight_bytes", cost.weight_bytes,
        "weight_bytes_per_second", cost.weight_bytes / p->median, "activation_bytes",
        (json_int_t)nn_lane_activation_bytes(t->lane), "setup_seconds", t->setup_seconds);
}

static base_status measure(struct bench *t, const struct cli_bench_infer *b)
{
    base_status st = BASE_OK;
    struct train_pace pace = {0};
    struct train_pace_summary p;
    double seconds, peak;

    TRY(train_pace_init(&pace, b->steps));
    for (int64_t i = 0; i <= b->steps; i++) { /* the first one warms up */
        TRY(answer(t, &seconds));
        train_pace_add(&pace, seconds, t->batch);
    }
    p = train_pace_summary(&pace);
    peak = train_measure_peak(t->threads);
    if (b->json)
        TRY(print_line(report(t, &p, peak)));
    else
        print(t, &p, peak);
out:
    train_pace_fini(&pace);
    return st;
}

base_status cli_bench_infer(const struct cli_bench_infer *b)
{
    struct bench t;
    base_status st = bench_init(&t, b);

    if (st == BASE_OK)
        st = b->paced ? paced(&t) : measure(&t, b);
    bench_fini(&t);
    return st;
}
