/* SPDX-License-Identifier: MIT
 *
 * paceline bench layers|step MODEL: where the time of a training step goes, on random numbers.
 * paceline bench kernels MODEL: how fast each candidate computes each convolution.
 * paceline bench infer MODEL: how fast it answers.
 * paceline bench ratings DATA: how fast a rating model is fitted.
 * paceline bench collectives: how fast workers combine buffers.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/bench_collectives.h"
#include "cli/bench_infer.h"
#include "cli/bench_kernels.h"
#include "cli/bench_ratings.h"
#include "cli/cli.h"
#include "cli/shape.h"
#include "nn/conv/conv.h"
#include "nn/conv/kernelplan.h"
#include "recsys/model.h"
#include "train/measure.h"
#include "train/pace.h"

struct args {
    const char *input, *kernels, *weights, *rating_model, *split, *pictures;
    int64_t classes, batch, threads, steps, seed, lists;
    bool tune, forward, paced, json;
    double least; /* seconds */
    struct cli_bench_collectives collectives;
};

/* Forward and backward cost three times the forward. */
static double step_flops(double forward, int64_t batch)
{
    return 3 * forward * (double)batch;
}

static double seconds_of(struct nn_layer_time t)
{
    return t.forward + t.backward;
}

static json_t *layer_json(const struct nn_node *node, struct nn_layer_time t, int64_t steps)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f}", "name", node->name, "layer", node->layer->name,
                     "forward_seconds", t.forward / (double)steps, "backward_seconds",
                     t.backward / (double)steps, "flops", node->flops);
}

static void print_layer(const struct nn_node *node, struct nn_layer_time t, const struct args *a,
                        double total)
{
    double steps = (double)a->steps, seconds = seconds_of(t) / steps;
    double flops = node->flops * (double)a->batch * (node->params > 0 ? 3 : 2);

    printf("%-24s %-16s %9.3f %9.3f %6.1f %%", node->name, node->layer->name,
           1e3 * t.forward / steps, 1e3 * t.backward / steps, 100 * seconds_of(t) / total);
    if (node->flops > 1e5 && seconds > 0)
        printf(" %8.1f", flops / seconds / 1e9);
    putchar('\n');
}

static base_status layers(struct train_measure *m, const struct args *a)
{
    base_status st = BASE_OK;
    const struct nn_graph *graph = train_measure_graph(m);
    int count = nn_graph_layers(graph);
    struct nn_layer_time *times = base_calloc((size_t)count, sizeof *times);
    double seconds, loss, total = 0;
    json_t *list = json_array(), *json = NULL;

    TRY(train_measure_step(m, &seconds, &loss)); /* warms up */
    nn_net_profile(train_measure_net(m), times);
    for (int64_t i = 0; i < a->steps; i++)
        TRY(train_measure_step(m, &seconds, &loss));
    for (int i = 0; i < count; i++)
        total += seconds_of(times[i]);
    if (!a->json)
        printf("%-24s %-16s %9s %9s %8s %8s\n", "layer", "", "fwd ms", "bwd ms", "share", "GF/s");
    for (int i = 0; i < count; i++) {
        if (a->json)
            json_array_append_new(list, layer_json(nn_graph_node(graph, i), times[i], a->steps));
        else if (seconds_of(times[i]) > 0)
            print_layer(nn_graph_node(graph, i), times[i], a, total);
    }
    json = json_pack("{s:i, s:I, s:i, s:s, s:O}", "schema", 1, "batch", (json_int_t)a->batch,
                     "threads", train_measure_threads(m), "kernels",
                     nn_net_kernels(train_measure_net(m)), "layers", list);
    if (a->json)
        TRY(base_json_print(json));
    else
        printf("\nall layers %.2f ms a step; kernels: %s\n", 1e3 * total / (double)a->steps,
               nn_net_kernels(train_measure_net(m)));
out:
    json_decref(json);
    json_decref(list);
    base_free(times);
    return st;
}

/* A step for each line of standard input, so that another program can take turns with this one.
 * `before`: peak memory before anything of the model was there. */
static base_status paced(struct train_measure *m, uint64_t before)
{
    base_status st = BASE_OK;
    char line[64];
    double seconds, loss, cpu;

    printf("{\"ready\":true,\"peak_memory_bytes\":%llu}\n", (unsigned long long)before);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        cpu = base_process_cpu();
        TRY(train_measure_step(m, &seconds, &loss));
        printf("{\"seconds\":%.9f,\"cpu_seconds\":%.9f,\"loss\":%.9g,"
               "\"peak_memory_bytes\":%llu}\n",
               seconds, base_process_cpu() - cpu, loss, (unsigned long long)base_peak_memory());
        if (fflush(stdout) != 0)
            TRY(base_fail(BASE_ERR_IO, "cannot write to standard output: %m"));
    }
out:
    return st;
}

static base_status step(struct train_measure *m, const struct args *a)
{
    base_status st = BASE_OK;
    const struct nn_graph *graph = train_measure_graph(m);
    struct train_pace pace = {0}, updates = {0};
    struct train_pace_summary t;
    double seconds, loss, peak, end = base_now() + a->least;
    double nominal = step_flops(nn_graph_flops(graph), a->batch);
    double executed =
        step_flops(nn_kernelplan_flops(graph, nn_net_kernels(train_measure_net(m))), a->batch);
    json_t *json = NULL;

    TRY(train_pace_init(&pace, a->steps));
    TRY(train_pace_init(&updates, a->steps));
    for (int64_t i = 0; i <= a->steps || base_now() < end; i++) { /* the first one warms up */
        TRY(train_measure_step(m, &seconds, &loss));
        train_pace_add(&pace, seconds, a->batch);
        train_pace_add(&updates, train_measure_update(m), a->batch);
    }
    t = train_pace_summary(&pace);
    peak = train_measure_peak(train_measure_threads(m));
    json =
        json_pack("{s:i, s:I, s:i, s:s, s:{s:f, s:f, s:f, s:f}, s:f, s:f, s:f, s:f, s:I}", "schema",
                  1, "batch", (json_int_t)a->batch, "threads", train_measure_threads(m), "kernels",
                  nn_net_kernels(train_measure_net(m)), "seconds", "first", t.first, "median",
                  t.median, "min", t.min, "update", train_pace_summary(&updates).median,
                  "samples_per_second", (double)a->batch / t.median, "nominal_flops",
                  nominal / t.median, "executed_flops", executed / t.median, "peak_flops", peak,
                  "peak_memory_bytes", (json_int_t)base_peak_memory());
    if (a->json)
        TRY(base_json_print(json));
    else
        printf("batch %lld, %d threads: first %.2f ms, median %.2f ms, best %.2f ms; %.0f "
               "samples/s; nominal %.1f GF/s, executed %.1f, %.0f %% of the FMA peak of %.1f\n",
               (long long)a->batch, train_measure_threads(m), 1e3 * t.first, 1e3 * t.median,
               1e3 * t.min, (double)a->batch / t.median, nominal / t.median / 1e9,
               executed / t.median / 1e9, 100 * executed / t.median / peak, peak / 1e9);
out:
    json_decref(json);
    train_pace_fini(&pace);
    train_pace_fini(&updates);
    return st;
}

static base_status infer(const struct args *a, const char *model)
{
    base_status st = BASE_OK;
    struct cli_bench_infer b = {.model = model,
                                .weights = a->weights,
                                .classes = (int)a->classes,
                                .batch = (int)a->batch,
                                .threads = (int)a->threads,
                                .steps = a->steps,
                                .paced = a->paced,
                                .json = a->json};

    if (strcmp(a->kernels, "auto") != 0)
        b.kernels = a->kernels;
    TRY(cli_shape(a->input, &b.input));
    TRY(cli_bench_infer(&b));
out:
    return st;
}

static const char *const verbs[] = {"layers",  "step",        "kernels", "infer",
                                    "ratings", "collectives", NULL};

static base_status model(const struct args *a, const struct cli_positional *positional)
{
    bool by_layer = strcmp(positional->at[0], "layers") == 0;
    struct train_measure *m = NULL;
    struct train_measure_setup setup = {.model = positional->at[1],
                                        .classes = (int)a->classes,
                                        .batch = (int)a->batch,
                                        .threads = (int)a->threads,
                                        .kernels = a->kernels,
                                        .tune = a->tune};
    uint64_t before = base_peak_memory();
    base_status st = BASE_OK;

    TRY(cli_shape(a->input, &setup.input));
    TRY(train_measure_new(&setup, &m));
    if (by_layer)
        TRY(layers(m, a));
    else if (a->paced)
        TRY(paced(m, before));
    else
        TRY(step(m, a));
out:
    train_measure_free(m);
    return st;
}

static base_status kernels(const struct args *a, const char *name)
{
    struct cli_bench_kernels setup = {.model = name,
                                      .classes = (int)a->classes,
                                      .batch = (int)a->batch,
                                      .threads = (int)a->threads,
                                      .rounds = (int)a->steps,
                                      .forward = a->forward,
                                      .json = a->json};
    base_status st = BASE_OK;

    TRY(cli_shape(a->input, &setup.input));
    TRY(cli_bench_kernels(&setup));
out:
    return st;
}

static base_status cmd_bench_ratings(const struct args *a, const char *data)
{
    return cli_bench_ratings(&(struct cli_bench_ratings){.data = data,
                                                         .model = a->rating_model,
                                                         .split = a->split,
                                                         .seed = a->seed,
                                                         .threads = (int)a->threads,
                                                         .lists = (int)a->lists,
                                                         .pictures = a->pictures,
                                                         .json = a->json});
}

static base_status cmd_bench(void *args, const struct cli_positional *positional)
{
    struct args *a = args;

    const char *verb = positional->at[0];

    a->collectives.json = a->json;
    if (strcmp(verb, "collectives") == 0)
        return positional->count == 1
                   ? cli_bench_collectives(&a->collectives)
                   : base_fail(BASE_ERR_USAGE, "bench collectives takes no model");
    if (strcmp(verb, "ratings") == 0)
        return positional->count == 2
                   ? cmd_bench_ratings(a, positional->at[1])
                   : base_fail(BASE_ERR_USAGE,
                               "bench ratings takes one file, folder or known set of ratings");
    if (positional->count != 2)
        return base_fail(BASE_ERR_USAGE, "bench %s takes one model", verb);
    if (strcmp(verb, "kernels") == 0)
        return kernels(a, positional->at[1]);
    if (strcmp(verb, "infer") == 0)
        return infer(a, positional->at[1]);
    if (strcmp(verb, "layers") == 0 || strcmp(verb, "step") == 0)
        return model(a, positional);
    return base_unknown(BASE_ERR_USAGE, "verb", verb, verbs, 6);
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "batch", .alias = "batch-size", .argument = "N", .kind = BASE_INT, .offset = AT(batch), .min = 1, .max = 1e5,
     .help = "samples of a step", .local = true},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(threads), .max = 1024,
     .help = "compute threads; 0: one per core", .local = true},
    {.name = "steps", .argument = "N", .kind = BASE_INT, .offset = AT(steps), .min = 1, .max = 1e6,
     .help = "steps to measure, after one that warms up", .local = true},
    {.name = "for", .argument = "S", .kind = BASE_REAL, .offset = AT(least), .max = 3600,
     .help = "step: more steps, until so many seconds have passed", .local = true},
    {.name = "kernels", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(kernels),
     .registry = nn_portable_conv_registry,
     .help = "a convolution kernel wherever it serves, or auto, by shape and CPU level one of",
     .local = true},
    {.name = "tune", .kind = BASE_FLAG, .offset = AT(tune),
     .help = "layers, step: with the kernels that are the fastest here", .local = true},
    {.name = "forward", .kind = BASE_FLAG, .offset = AT(forward),
     .help = "kernels: without the backward", .local = true},
    {.name = "input", .argument = "CxHxW", .kind = BASE_TEXT, .offset = AT(input),
     .help = "input shape [the model's own]", .local = true},
    {.name = "classes", .argument = "N", .kind = BASE_INT, .offset = AT(classes), .max = 65536,
     .help = "classes; 0: the model's own", .local = true},
    {.name = "paced", .kind = BASE_FLAG, .offset = AT(paced),
     .help = "step, infer: as lines of standard input say, with JSON lines", .local = true},
    {.name = "weights", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(weights),
     .help = "infer: a safetensors file [those of a start]", .local = true},
    {.name = "model", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(rating_model),
     .registry = recsys_model_registry,
     .help = "ratings: the model, NAME or NAME:option=value,…; one of", .local = true},
    {.name = "split", .argument = "HOW", .kind = BASE_TEXT, .offset = AT(split),
     .help = "ratings: which are for tests: 0.2, fold:2/5, last, last:3, from:2005-01-31",
     .local = true},
    {.name = "seed", .argument = "N", .kind = BASE_INT, .offset = AT(seed), .max = 9007199254740992,
     .help = "ratings: of the split and of starting values", .local = true},
    {.name = "lists", .argument = "N", .kind = BASE_INT, .offset = AT(lists), .max = 1e5,
     .help = "ratings: judge the N best items of every user, too: precision, recall, NDCG",
     .local = true},
    {.name = "pictures", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(pictures),
     .help = "ratings: draw guesses beside the truth, as SVG files in DIR", .local = true},
    {.name = "collective", .argument = "C", .kind = BASE_TEXT, .offset = AT(collectives.collective),
     .help = "collectives: kinds, algorithms, or both, as in all-reduce=ring [every kind]",
     .local = true},
    {.name = "bytes", .argument = "B", .kind = BASE_INT, .offset = AT(collectives.bytes),
     .max = 1e12, .help = "collectives: of the buffer; 0: from 4 B to 256 MB", .local = true},
    {.name = "seconds", .argument = "S", .kind = BASE_REAL, .offset = AT(collectives.seconds),
     .min = 1e-3, .max = 3600,
     .help = "collectives: to measure each kind and size for", .local = true},
    {.name = "every", .kind = BASE_FLAG, .offset = AT(collectives.every),
     .help = "collectives: also every algorithm that serves, in turns with the chosen one",
     .local = true},
    {.name = "engine", .kind = BASE_FLAG, .offset = AT(collectives.engine),
     .help = "collectives: also through the communication thread, in turns", .local = true},
    {.table = cluster_options, .offset = AT(collectives.cluster)},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_bench = {
    .name = "bench",
    .help = "measure a training step, whole or layer by layer, kernels, answers, rating models, or "
            "collectives",
    .usage = "paceline bench layers|step|kernels|infer MODEL [options]\n"
             "       paceline bench ratings DATA [options]\n"
             "       paceline bench collectives [options]",
    .examples = "  paceline bench layers vgg11 --batch 64\n"
                "  paceline bench step mnist-cnn --threads 1 --json\n"
                "  paceline bench step vgg11 --kernels onednn\n"
                "  paceline bench kernels resnet18 --batch 16 --threads 1\n"
                "  paceline bench infer vgg11 --batch 1 --threads 1 --steps 200\n"
                "  paceline bench ratings ml-latest-small --model bmf:time=7 --split fold:1/5\n"
                "  paceline bench collectives --workers 2 --collective all-reduce\n",
    .verbs = verbs,
    .completes = "M",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.batch = 64,
                                     .steps = 10,
                                     .kernels = "auto",
                                     .rating_model = "mf",
                                     .split = "0.2",
                                     .seed = 1,
                                     .collectives = {.cluster = CLUSTER_FLAGS, .seconds = 0.2}},
    .min_positional = 1,
    .max_positional = 2,
    .run = cmd_bench,
};
