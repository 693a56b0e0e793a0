/* SPDX-License-Identifier: MIT
 *
 * Evaluation of a checkpoint: how well a trained model does on its own data, or on another set of
 * the same shape.
 */
#include <string.h>

#include "base/mem.h"
#include "base/stop.h"
#include "data/trigger.h"
#include "model/model.h"
#include "nn/threads.h"
#include "recsys/saved.h"
#include "train/backdoor.h"
#include "train/eval_ratings.h"
#include "train/evaluate.h"
#include "train/pace.h"
#include "train/train.h"

struct evaluation {
    struct model model;
    struct data_set *set;
    struct nn_net *net;
    struct train_tally tally;
    const char *name, *data; /* of model and data, for the result */
    int threads, batch;
    struct train_clock clock;
    struct train_times times;
    struct train_pace pace; /* of the batches */
    struct train_backdoor backdoor;
};

static base_status open_model(struct evaluation *e, const struct train_eval *eval)
{
    base_status st = BASE_OK;

    TRY(model_open(eval->checkpoint, eval->runs_dir, eval->best, &e->model));
    TRY(base_json_string(e->model.about.settings, "model", &e->name));
out:
    return st;
}

static base_status open_data(struct evaluation *e, const struct train_eval *eval)
{
    const json_t *skips = json_object_get(e->model.about.settings, "skip-bad");
    struct data_options options = model_data_options(&e->model);
    base_status st = BASE_OK;

    options.skip_bad = (uint32_t)(eval->skip_bad >= 0  ? eval->skip_bad
                                  : eval->data == NULL ? json_integer_value(skips)
                                                       : 0);
    e->data = eval->data != NULL ? eval->data : model_about_place(&e->model.about);
    TRY(data_open(e->data, &options, &e->set));
    data_warn(e->set);
    TRY(model_check_data(&e->model, data_describe(e->set)));
out:
    return st;
}

static json_t *result_of(const struct evaluation *e, const struct train_eval *eval)
{
    const json_t *position = json_object_get(e->model.checkpoint.manifest, "position");

    return json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:o, s:f, s:o, s:o, s:I, s:b, "
        "s:s}",
        "schema", 1, "model", e->name, "data", e->data, "strategy", "single", "workers", 1, "hosts",
        1, "threads", e->threads, "batch", (json_int_t)eval->batch, "steps",
        (json_int_t)e->model.checkpoint.step, "epochs",
        json_integer_value(json_object_get(position, "epoch")), "parameters",
        (json_int_t)nn_graph_parameters(e->model.graph), "step_seconds", train_pace_json(&e->pace),
        "samples_per_second", (double)train_tally_count(&e->tally) / e->times.total, eval->part,
        train_tally_json(&e->tally), "time", train_times_json(&e->times), "peak_memory_bytes",
        (json_int_t)base_peak_memory(), "interrupted", 0, "run", e->model.checkpoint.path);
}

static char *text_of(const struct evaluation *e, const struct train_eval *eval)
{
    struct base_str text = {0};
    unsigned long long count = train_tally_count(&e->tally);

    base_str_add(&text, "%s on %s (%s): ", e->model.checkpoint.path, e->data, eval->part);
    train_tally_line(&e->tally, &text);
    base_str_add(&text, " of %llu samples, %.0f samples/s\n", count,
                 (double)count / e->times.total);
    train_tally_text(&e->tally, &text);
    if (e->backdoor.seen != NULL)
        train_backdoor_text(&e->backdoor, &text);
    return base_str_take(&text);
}

static base_status open_backdoor(struct evaluation *e, const struct train_eval *eval,
                                 enum data_part part)
{
    base_status st = BASE_OK;
    int32_t target = 0;

    if ((eval->trigger == NULL) != (eval->target == NULL))
        TRY(base_fail(BASE_ERR_USAGE, "--trigger and --target go together: a mark, and the class "
                                      "that it is to make of others"));
    if (eval->trigger == NULL)
        goto out;
    TRY(data_class_find(data_describe(e->set), eval->target, &target));
    TRY(train_backdoor_measure(e->net, e->set, part, e->batch, data_trigger_find(eval->trigger),
                               target, &e->backdoor));
out:
    return st;
}

static base_status eval_network(const struct train_eval *eval, json_t **result_p, char **text_p)
{
    struct evaluation e = {0};
    enum data_part part = strcmp(eval->part, "train") == 0 ? DATA_TRAIN : DATA_TEST;
    base_status st = BASE_OK;
    uint32_t count;

    e.threads = nn_threads_set((int)eval->threads);
    TRY(open_model(&e, eval));
    TRY(open_data(&e, eval));
    count = data_describe(e.set)->count[part];
    if (count == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s has no %s samples", e.data, eval->part));
    e.batch = (int)(eval->batch < count ? eval->batch : count);
    TRY(model_net(&e.model, e.batch, &e.net));
    train_tally_init(&e.tally, data_describe(e.set));
    TRY(train_pace_init(&e.pace, (count + (uint32_t)e.batch - 1) / (uint32_t)e.batch));
    base_stop_install(NULL);
    train_clock_start(&e.clock);
    TRY(train_evaluate(e.net, e.set, part, (struct data_share){0}, e.batch, false, &e.tally,
                       &e.clock, &e.pace));
    e.times = train_clock_times(&e.clock);
    TRY(open_backdoor(&e, eval, part));
    *text_p = text_of(&e, eval);
    *result_p = result_of(&e, eval);
    if (e.backdoor.seen != NULL)
        json_object_set_new(*result_p, "backdoor", train_backdoor_json(&e.backdoor));
out:
    train_backdoor_fini(&e.backdoor);
    nn_net_free(e.net);
    data_close(e.set);
    train_tally_fini(&e.tally);
    train_pace_fini(&e.pace);
    model_close(&e.model);
    return st;
}

base_status train_eval_run(const struct train_eval *eval, json_t **result_p, char **text_p)
{
    base_status st = BASE_OK;
    struct store_checkpoint checkpoint = {0};
    bool ratings;

    *result_p = NULL;
    *text_p = NULL;
    TRY(model_find(eval->checkpoint, eval->runs_dir, eval->best, &checkpoint));
    ratings = recsys_saved_is(checkpoint.manifest);
    if (!ratings && (eval->lists > 0 || eval->pictures != NULL))
        TRY(base_fail(BASE_ERR_USAGE, "--lists and --pictures are for rating models"));
    if (ratings && (eval->trigger != NULL || eval->target != NULL))
        TRY(base_fail(BASE_ERR_USAGE, "--trigger is for images; ratings have fake users: audit"));
    TRY(ratings ? train_eval_ratings(eval, &checkpoint, result_p, text_p)
                : eval_network(eval, result_p, text_p));
out:
    store_checkpoint_close(&checkpoint);
    return st;
}
