/* SPDX-License-Identifier: MIT
 *
 * Evaluation of a checkpoint: the manifest says which model, classes and normalisation; the data
 * may be another set of the same shape.
 */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "nn/threads.h"
#include "train/evaluate.h"
#include "train/state.h"
#include "train/train.h"

struct evaluation {
    struct store_checkpoint checkpoint;
    struct data_set *set;
    struct nn_graph *graph;
    struct train_state state;
    struct nn_net *net;
    struct train_metrics metrics;
    const char *model, *data; /* names for the result */
    int threads, batch;
    double seconds, data_seconds;
    struct train_pace pace; /* of the batches */
};

static base_status open_checkpoint(struct evaluation *e, const struct train_eval *eval)
{
    char *path = base_format("%s/%s", eval->runs_dir, eval->checkpoint);
    base_status st;

    st = store_checkpoint_open(base_is_dir(path) ? path : eval->checkpoint, eval->best,
                               &e->checkpoint);
    base_free(path);
    return st;
}

static base_status read_numbers(const json_t *manifest, const char *key, float *numbers, int count)
{
    json_t *list = NULL;
    base_status st = base_json_array(manifest, key, &list);

    if (st != BASE_OK)
        return st;
    if ((int)json_array_size(list) != count)
        return base_fail(BASE_ERR_DATA,
                         "\"%s\" of the manifest does not fit the data's %d channels", key, count);
    for (int i = 0; i < count; i++)
        numbers[i] = (float)json_number_value(json_array_get(list, (size_t)i));
    return BASE_OK;
}

/* The data is normalised as it was in training, not by its own statistics. */
static base_status open_data(struct evaluation *e, const struct train_eval *eval)
{
    const json_t *manifest = e->checkpoint.manifest;
    struct data_options options = {0};
    const struct data_info *info;
    json_t *input = NULL, *data = NULL, *settings = NULL;
    int64_t classes = 0;
    base_status st = BASE_OK;

    TRY(base_json_array(manifest, "input", &input));
    TRY(base_json_integer(manifest, "classes", &classes));
    TRY(base_json_object(manifest, "data", &data));
    TRY(base_json_string(data, "name", &e->data));
    TRY(base_json_object(manifest, "settings", &settings));
    TRY(base_json_string(settings, "model", &e->model));
    if (eval->data != NULL)
        e->data = eval->data;
    options.channels = (int)json_array_size(json_object_get(manifest, "mean"));
    if (options.channels < 1 || options.channels > DATA_MAX_CHANNELS)
        TRY(base_fail(BASE_ERR_DATA, "\"mean\" of the manifest has no sensible length"));
    TRY(read_numbers(manifest, "mean", options.mean, options.channels));
    TRY(read_numbers(manifest, "deviation", options.deviation, options.channels));
    TRY(data_open(e->data, &options, &e->set));
    info = data_describe(e->set);
    if (info->channels != json_integer_value(json_array_get(input, 0)) ||
        info->height != json_integer_value(json_array_get(input, 1)) ||
        info->width != json_integer_value(json_array_get(input, 2)) || info->classes != classes)
        TRY(base_fail(BASE_ERR_MODEL,
                      "%s is %dx%dx%d with %d classes, the model was trained on %lldx%lldx%lld "
                      "with %lld",
                      e->data, info->channels, info->height, info->width, info->classes,
                      json_integer_value(json_array_get(input, 0)),
                      json_integer_value(json_array_get(input, 1)),
                      json_integer_value(json_array_get(input, 2)), (long long)classes));
out:
    return st;
}

static base_status open_model(struct evaluation *e)
{
    const struct data_info *info = data_describe(e->set);
    const char *text = NULL;
    base_status st = BASE_OK;

    TRY(base_json_string(e->checkpoint.manifest, "model", &text));
    TRY(nn_graph_new(text, e->checkpoint.path,
                     (struct nn_shape){.c = info->channels, .h = info->height, .w = info->width},
                     info->classes, &e->graph));
    TRY(train_state_init(&e->state, e->graph, NULL));
    TRY(train_state_load(&e->state, &e->checkpoint));
    TRY(nn_net_new(e->graph,
                   &(struct nn_setup){.n_max = e->batch,
                                      .kernels = json_string_value(
                                          json_object_get(e->checkpoint.manifest, "kernels")),
                                      .weights = e->state.weights,
                                      .statistics = e->state.statistics},
                   &e->net));
    train_metrics_init(&e->metrics, info->classes);
out:
    return st;
}

static json_t *result_of(const struct evaluation *e, const struct train_eval *eval)
{
    struct train_times times = {
        .total = e->seconds, .compute = e->seconds - e->data_seconds, .data = e->data_seconds};
    const json_t *position = json_object_get(e->checkpoint.manifest, "position");

    return json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:o, s:f, s:o, s:o, s:I, s:b, "
        "s:s}",
        "schema", 1, "model", e->model, "data", e->data, "strategy", "single", "workers", 1,
        "hosts", 1, "threads", e->threads, "batch", (json_int_t)eval->batch, "steps",
        (json_int_t)e->checkpoint.step, "epochs",
        json_integer_value(json_object_get(position, "epoch")), "parameters",
        (json_int_t)nn_graph_parameters(e->graph), "step_seconds", train_pace_json(&e->pace),
        "samples_per_second", (double)e->metrics.count / e->seconds, eval->part,
        train_metrics_json(&e->metrics), "time", train_times_json(&times), "peak_memory_bytes",
        (json_int_t)base_peak_memory(), "interrupted", 0, "run", e->checkpoint.path);
}

static void tell(const struct evaluation *e, const struct train_eval *eval)
{
    struct base_str text = {0};

    train_metrics_text(&e->metrics, data_describe(e->set)->class_names, &text);
    base_info("%s on %s (%s): loss %.4f, accuracy %.2f %% of %llu samples, %.0f samples/s\n\n%s",
              e->checkpoint.path, e->data, eval->part, train_metrics_loss(&e->metrics),
              100 * train_metrics_accuracy(&e->metrics), (unsigned long long)e->metrics.count,
              (double)e->metrics.count / e->seconds, text.text);
    base_str_fini(&text);
}

base_status train_eval_run(const struct train_eval *eval, json_t **result_p)
{
    struct evaluation e = {0};
    enum data_part part = strcmp(eval->part, "train") == 0 ? DATA_TRAIN : DATA_TEST;
    base_status st = BASE_OK;
    uint32_t count;
    double began;

    *result_p = NULL;
    e.threads = nn_threads_set((int)eval->threads);
    TRY(open_checkpoint(&e, eval));
    TRY(open_data(&e, eval));
    count = data_describe(e.set)->count[part];
    if (count == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s has no %s samples", e.data, eval->part));
    e.batch = (int)(eval->batch < count ? eval->batch : count);
    TRY(open_model(&e));
    TRY(train_pace_init(&e.pace, (count + (uint32_t)e.batch - 1) / (uint32_t)e.batch));
    base_stop_install();
    began = base_now();
    TRY(train_evaluate(e.net, e.set, part, (struct data_share){0}, e.batch, &e.metrics,
                       &e.data_seconds, &e.pace));
    e.seconds = base_now() - began;
    tell(&e, eval);
    *result_p = result_of(&e, eval);
out:
    nn_net_free(e.net);
    train_state_fini(&e.state);
    nn_graph_free(e.graph);
    data_close(e.set);
    train_metrics_fini(&e.metrics);
    train_pace_fini(&e.pace);
    store_checkpoint_close(&e.checkpoint);
    return st;
}
