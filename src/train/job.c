/* SPDX-License-Identifier: MIT */
#include "train/job.h"

#include <stdio.h>
#include <string.h>

#include "nn/conv/conv.h"
#include "nn/optimiser.h"
#include "nn/schedule.h"
#include "train/aggregator.h"
#include "train/attack.h"
#include "train/shares.h"
#include "train/slow.h"
#include "train/strategy.h"
#include "train/task.h"

const struct train_job train_job_defaults = TRAIN_JOB_DEFAULTS;

#define AT(field) offsetof(struct train_job, field)

/* clang-format off */
const struct base_option train_job_options[] = {
    {.name = "model", .argument = "M", .kind = BASE_TEXT, .offset = AT(model),
     .help = "a model of the zoo, or a model file"},
    {.name = "data", .argument = "D", .kind = BASE_TEXT, .offset = AT(data),
     .help = "a data set `data get` knows, a file or folder, or synthetic[:…]"},
    {.name = "epochs", .argument = "N", .kind = BASE_INT, .offset = AT(epochs), .max = 1e6,
     .help = "passes over the training data"},
    {.name = "steps", .argument = "N", .kind = BASE_INT, .offset = AT(steps), .min = -1,
     .max = 1e12, .help = "stop after N steps, in whichever epoch; -1: by --epochs alone"},
    {.name = "batch", .alias = "batch-size", .argument = "N", .kind = BASE_INT, .offset = AT(batch),
     .min = 1, .max = 1e6, .help = "samples of a step, of all workers together"},
    {.name = "batch-per-worker", .argument = "N", .kind = BASE_INT, .offset = AT(batch_per_worker),
     .max = 1e6, .help = "samples of a step for each of the first workers, in place of --batch"},
    {.name = "accumulate", .argument = "M", .kind = BASE_INT, .offset = AT(accumulate), .min = 1,
     .max = 4096, .help = "compute each batch in M pieces, with less memory"},
    {.name = "lr", .alias = "learning-rate", .argument = "X", .kind = BASE_REAL, .offset = AT(lr),
     .max = 1e6, .help = "learning rate"},
    {.name = "momentum", .argument = "X", .kind = BASE_REAL, .offset = AT(momentum), .max = 0.99999,
     .help = "of sgd"},
    {.name = "nesterov", .kind = BASE_FLAG, .offset = AT(nesterov),
     .help = "Nesterov's momentum"},
    {.name = "weight-decay", .argument = "X", .kind = BASE_REAL, .offset = AT(weight_decay),
     .max = 1e3, .help = "weight decay"},
    {.name = "optimiser", .alias = "optimizer", .argument = "NAME", .kind = BASE_NAME,
     .offset = AT(optimiser), .registry = nn_optimiser_registry, .help = "how weights are updated"},
    {.name = "beta1", .argument = "X", .kind = BASE_REAL, .offset = AT(beta1), .max = 0.999999,
     .help = "of adam and adamw"},
    {.name = "beta2", .argument = "X", .kind = BASE_REAL, .offset = AT(beta2), .max = 0.9999999,
     .help = "of adam and adamw"},
    {.name = "epsilon", .argument = "X", .kind = BASE_REAL, .offset = AT(epsilon), .min = 1e-30,
     .max = 1, .help = "of adam and adamw"},
    {.name = "clip", .argument = "X", .kind = BASE_REAL, .offset = AT(clip), .max = 1e9,
     .help = "scale gradients down to this norm; 0: never"},
    {.name = "schedule", .argument = "NAME", .kind = BASE_NAME, .offset = AT(schedule),
     .registry = nn_schedule_registry, .help = "of the learning rate"},
    {.name = "warmup", .argument = "E", .kind = BASE_REAL, .offset = AT(warmup), .max = 1e6,
     .help = "epochs of linear rise before the schedule"},
    {.name = "decay-every", .argument = "E", .kind = BASE_REAL, .offset = AT(decay_every),
     .min = 1e-6, .max = 1e6, .help = "step: epochs between decays"},
    {.name = "decay", .argument = "X", .kind = BASE_REAL, .offset = AT(decay), .min = 1e-6,
     .max = 1, .help = "step: factor of each decay"},
    {.name = "final-lr", .argument = "X", .kind = BASE_REAL, .offset = AT(final_lr),
     .max = 1e12, .help = "cosine, one-cycle, exponential: where they end, as a share of --lr"},
    {.name = "validation", .argument = "X", .kind = BASE_REAL, .offset = AT(validation), .max = 0.9,
     .help = "share of the training data kept apart; its loss chooses the best checkpoint"},
    {.name = "patience", .argument = "N", .kind = BASE_INT, .offset = AT(patience), .max = 1e6,
     .help = "stop after N epochs without a better validation loss; 0: never"},
    {.name = "target", .argument = "COLUMN", .kind = BASE_TEXT, .offset = AT(target),
     .help = "of a table: the column to predict [the last one]"},
    {.name = "column", .argument = "NAME=KIND", .kind = BASE_TEXTS, .offset = AT(columns),
     .help = "of a table: read a column as number or category, or ignore it"},
    {.name = "test-share", .argument = "X", .kind = BASE_REAL, .offset = AT(test_share), .max = 0.9,
     .help = "of a table in one file: share of the rows kept for tests"},
    {.name = "split", .argument = "HOW", .kind = BASE_TEXT, .offset = AT(split),
     .help = "of ratings: what is kept for tests: a share, fold:2/5, last[:N] of every user, or "
             "from:DATE on [0.2]"},
    {.name = "columns", .argument = "LIST", .kind = BASE_TEXT, .offset = AT(rating_columns),
     .help = "of ratings in another form: what each column is, as in user,item,rating,time"},
    {.name = "separator", .argument = "TEXT", .kind = BASE_TEXT, .offset = AT(separator),
     .help = "of --columns [what the lines seem to have]"},
    {.name = "strict", .kind = BASE_FLAG, .offset = AT(strict),
     .help = "of ratings: refuse bad lines and pairs that come twice"},
    {.name = "add", .argument = "FILE", .kind = BASE_TEXTS, .offset = AT(add),
     .help = "with --resume: go on with the ratings of this file, too, and their users and items"},
    {.name = "exclude", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(exclude),
     .help = "leave out the samples, or users of ratings, that this index lists (audit --drop)"},
    {.name = "image-size", .argument = "HxW", .kind = BASE_TEXT, .offset = AT(image_size),
     .help = "scale the images of a folder to this [their median size, at most 256 a side]"},
    {.name = "channels", .argument = "N", .kind = BASE_NAME, .offset = AT(channels),
     .names = (const char *const[]){"1", "3", NULL},
     .help = "read the images of a folder as gray (1) or colour (3) [colour if some have it]"},
    {.name = "crop", .argument = "HOW", .kind = BASE_NAME, .offset = AT(crop),
     .names = data_crop_names,
     .help = "images of a folder before they are scaled: none, whatever their proportions; centre; "
             "random, a part that differs each time, and the centre in tests"},
    {.name = "skip-bad", .argument = "N", .kind = BASE_INT, .offset = AT(skip_bad), .max = 1e6,
     .help = "leave out up to N images of a folder or lines of a table that cannot be read"},
    {.name = "pad", .argument = "N", .kind = BASE_INT, .offset = AT(pad), .max = 64,
     .help = "augment: pad by N pixels and crop anywhere"},
    {.name = "flip", .kind = BASE_FLAG, .offset = AT(flip),
     .help = "augment: mirror every second time"},
    {.name = "balanced", .kind = BASE_FLAG, .offset = AT(balanced),
     .help = "every batch has its share of every class"},
    {.name = "normalise", .alias = "normalize", .kind = BASE_FLAG, .offset = AT(normalise),
     .help = "mean 0, deviation 1 per channel or column; without it pixels are 0 … 1"},
    {.name = "seed", .argument = "N", .kind = BASE_INT, .offset = AT(seed), .max = 9e15,
     .help = "of all randomness"},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(threads), .max = 1024,
     .help = "compute threads; 0: the cores, divided by the workers of this host"},
    {.name = "memory", .argument = "BYTES", .kind = BASE_SIZE, .offset = AT(memory), .max = 1e15,
     .help = "what one worker may use; more is refused before the start; 0: its part of the host"},
    {.name = "strategy", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(strategy),
     .names = (const char *const[]){TRAIN_AUTO, NULL}, .registry = train_strategy_registry,
     .help = "how the work is divided, NAME or NAME:option=value,… "
             "(auto: single; of several workers ddp, or with --memory what fits; of rating models rows, of several workers with mf rotate)"},
    {.name = "shares", .argument = "HOW", .kind = BASE_TEXT, .offset = AT(shares),
     .names = train_shares_names,
     .help = "parts of a batch that workers compute: even; by speed, so that all finish together; "
             "auto, even unless workers are unlike for some seconds; with --like recorded, as that "
             "run had them"},
    {.name = "on-slow", .argument = "HOW", .kind = BASE_TEXT, .offset = AT(on_slow),
     .names = train_slow_names,
     .help = "what follows when a worker becomes slower than before and than its peers: tell; "
             "rebalance, shares follow speed from then on; evict, it leaves while --min-workers stay"},
    {.name = "aggregate", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(aggregate),
     .registry = train_aggregator_registry,
     .help = "how updates of workers become one (downpour; allreduce and ddp, where workers check each other), NAME or NAME:option=value,… [average]"},
    {.name = "attack", .argument = "W:KIND[=X],…", .kind = BASE_TEXT, .offset = AT(attack),
     .registry = train_attack_registry,
     .help = "to measure defences (downpour, allreduce, ddp): workers W attack the job, with strength X; needs "
             "--yes-attack. KIND is"},
    {.name = "sync-bn", .kind = BASE_FLAG, .offset = AT(sync_bn),
     .help = "batch-norm over the samples of all workers, so that they equal one"},
    {.name = "kernels", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(kernels),
     .registry = nn_portable_conv_registry,
     .help = "a convolution kernel wherever it serves, or auto, by shape and CPU level one of"},
    {.name = "tune", .kind = BASE_FLAG, .offset = AT(tune),
     .help = "time the kernels on this machine first and take the fastest; bits may differ then"},
    {.name = "log-every", .argument = "N", .kind = BASE_INT, .offset = AT(log_every), .min = -1,
     .max = 1e9,
     .help = "steps between log lines; 0: none; -1: 20, on a terminal 10 seconds at least"},
    {.name = "eval-every", .argument = "N", .kind = BASE_INT, .offset = AT(eval_every), .min = -1,
     .max = 1e6,
     .help = "epochs between tests; 0: only at the end; -1: 1, or up to 40 tests of many sweeps"},
    {.name = "test", .kind = BASE_FLAG, .offset = AT(test),
     .help = "evaluate on the test data"},
    {.name = "checkpoint", .kind = BASE_FLAG, .offset = AT(checkpoint),
     .help = "write checkpoints"},
    {.name = "checkpoint-every", .argument = "N", .kind = BASE_INT, .offset = AT(checkpoint_every),
     .max = 1e12, .help = "steps between checkpoints; 0: at each epoch's end, or up to 10 of many sweeps"},
    {.name = "keep", .argument = "K", .kind = BASE_INT, .offset = AT(keep), .max = 1e6,
     .help = "newest checkpoints to keep; 0: all"},
    {.name = "record", .argument = "LAYER", .kind = BASE_TEXTS, .offset = AT(record),
     .help = "write statistics of a layer's activations into the events; LAYER:npy: after each "
             "epoch the activations themselves, of --record-samples, into the run's folder"},
    {.name = "record-samples", .argument = "WHICH", .kind = BASE_TEXT, .offset = AT(record_samples),
     .help = "of LAYER:npy: numbers A..B of training samples, or an index file [0..15]"},
    {.name = "tensorboard", .kind = BASE_FLAG, .offset = AT(tensorboard),
     .help = "write event files for TensorBoard into the run's folder"},
    {.name = "init", .argument = "C", .kind = BASE_TEXT, .offset = AT(init),
     .help = "start from a checkpoint or a .safetensors file; layers that differ start new"},
    {.name = "run", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(run),
     .help = "name of the run [MODEL-DATA-N]", .local = true},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(runs_dir),
     .help = "where runs are kept", .local = true},
    {.name = "resume", .argument = "RUN", .kind = BASE_TEXT, .offset = AT(resume),
     .help = "go on with a run, in its folder", .local = true},
    {.name = "override", .kind = BASE_FLAG, .offset = AT(override),
     .help = "with --resume: change settings such as --lr that a run keeps otherwise",
     .local = true},
    {.name = "like", .argument = "RUN", .kind = BASE_TEXT, .offset = AT(like),
     .help = "take a run's settings as the defaults", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {.name = "quiet", .kind = BASE_FLAG, .offset = AT(quiet),
     .help = "only warnings and errors", .local = true},
    {.name = "watch", .kind = BASE_FLAG, .offset = AT(watch),
     .help = "show the run as a live page on this host (see `paceline watch`)", .local = true},
    {.name = "restart-workers", .kind = BASE_FLAG, .offset = AT(restart),
     .help = "start a new worker in place of one that died", .local = true},
    {.name = "yes-attack", .kind = BASE_FLAG, .offset = AT(yes_attack),
     .help = "this run and its model may be ruined by --attack", .local = true},
    {.table = cluster_options, .offset = AT(cluster)},
    {0},
};
/* clang-format on */

base_status train_job_image_size(const struct train_job *job, int *height_p, int *width_p)
{
    char rest = 0;
    int height = 0, width = 0;

    *height_p = *width_p = 0;
    if (job->image_size == NULL)
        return BASE_OK;
    if (sscanf(job->image_size, "%4dx%4d%c", &height, &width, &rest) != 2 || height < 1 ||
        width < 1 || height > DATA_MAX_SIDE || width > DATA_MAX_SIDE)
        return base_fail(BASE_ERR_USAGE,
                         "--image-size takes height x width of 1 to %d pixels, as in 96x128, not "
                         "'%s'",
                         DATA_MAX_SIDE, job->image_size);
    *height_p = height;
    *width_p = width;
    return BASE_OK;
}

enum data_crop train_job_crop(const struct train_job *job)
{
    int crop = 0;

    while (data_crop_names[crop] != NULL && strcmp(job->crop, data_crop_names[crop]) != 0)
        crop++;
    return (enum data_crop)crop; /* the table knows no other */
}

base_status train_job_check(const struct train_job *job)
{
    struct train_slow_policy policy;
    int height, width;
    int64_t batch = job->batch_per_worker > 0 ? job->batch_per_worker : job->batch;

    if (job->override && job->resume == NULL)
        return base_fail(BASE_ERR_USAGE, "--override is for --resume alone");
    if (job->model == NULL)
        return base_fail(BASE_ERR_USAGE, "--model is missing: a zoo name such as mnist-cnn, or a "
                                         "model file");
    if (job->data == NULL)
        return base_fail(BASE_ERR_USAGE, "--data is missing: a name such as fashion-mnist, or a "
                                         "folder or file");
    if (job->accumulate > batch)
        return base_fail(BASE_ERR_USAGE, "--accumulate %lld cuts a batch of %lld into nothing",
                         (long long)job->accumulate, (long long)batch);
    if (job->accumulate > 1 && job->sync_bn)
        return base_fail(BASE_ERR_USAGE, "--sync-bn lets batch-norm see the whole batch, "
                                         "--accumulate cuts it into pieces; leave one out");
    if (job->resume != NULL && job->run != NULL)
        return base_fail(BASE_ERR_USAGE,
                         "--run names a new run, but --resume goes on in the folder of %s; leave "
                         "one out",
                         job->resume);
    if (job->tune && strcmp(job->kernels, "auto") != 0)
        return base_fail(BASE_ERR_USAGE,
                         "--tune chooses the kernels by time, --kernels %s by name; "
                         "leave one out",
                         job->kernels);
    if (strcmp(job->schedule, "exponential") == 0 && job->final_lr <= 0)
        return base_fail(BASE_ERR_USAGE,
                         "--schedule exponential needs --final-lr above 0: where it ends, as a "
                         "share of --lr");
    if (job->nesterov && job->momentum == 0)
        return base_fail(BASE_ERR_USAGE, "--nesterov needs --momentum above 0");
    if (train_shares_check(job->shares) != BASE_OK ||
        train_slow_parse(job->on_slow, &policy) != BASE_OK)
        return BASE_ERR_USAGE;
    return train_job_image_size(job, &height, &width);
}

static bool is_one_of(const char *name, const char *const *names) /* NULL-ended */
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

enum train_change train_job_may_change(const char *name)
{
    static const char *const free_names[] = {"epochs",   "steps",      "threads",
                                             "memory",   "log-every",  "eval-every",
                                             "test",     "checkpoint", "checkpoint-every",
                                             "keep",     "record",     "record-samples",
                                             "patience", "strategy",   "shares",
                                             "data",     "add",        "tensorboard",
                                             "exclude",  "on-slow",    NULL};
    /* These decide what the state is of and how steps are counted. */
    static const char *const fixed_names[] = {
        "model",      "init",      "kernels", "tune",
        "validation", "normalise", "batch",   "batch-per-worker",
        "test-share", "target",    "column",  "split",
        "columns",    "separator", "strict",  NULL};

    return is_one_of(name, free_names)    ? TRAIN_CHANGE_FREE
           : is_one_of(name, fixed_names) ? TRAIN_CHANGE_NEVER
                                          : TRAIN_CHANGE_OVERRIDE;
}

enum train_use train_job_use(const char *name)
{
    static const char *const step_names[] = {
        "epochs",   "batch",        "batch-per-worker", "accumulate",  "lr",    "momentum",
        "nesterov", "weight-decay", "optimiser",        "beta1",       "beta2", "epsilon",
        "clip",     "schedule",     "warmup",           "decay-every", "decay", "final-lr",
        NULL};
    static const char *const sample_names[] = {
        "target",   "column", "test-share", "image-size",     "channels",  "crop",
        "skip-bad", "pad",    "flip",       "balanced",       "normalise", "sync-bn",
        "kernels",  "tune",   "record",     "record-samples", "init",      NULL};
    static const char *const ratings_names[] = {"split",  "columns", "separator",
                                                "strict", "add",     NULL};

    return is_one_of(name, step_names)      ? TRAIN_USE_STEPS
           : is_one_of(name, sample_names)  ? TRAIN_USE_SAMPLES
           : is_one_of(name, ratings_names) ? TRAIN_USE_RATINGS
                                            : TRAIN_USE_ANY;
}

bool train_job_is_auto(const struct train_job *job)
{
    return job->strategy == NULL || strcmp(job->strategy, TRAIN_AUTO) == 0;
}

const char *train_job_strategy(const struct train_job *job, bool several)
{
    const struct train_task *task = train_task_of(job->model);

    return train_job_is_auto(job) ? train_strategy_auto(task, job->model, several).strategy
                                  : job->strategy;
}

json_t *train_job_to_json(const struct train_job *job)
{
    return json_pack("{s:o, s:s?, s:s, s:s?, s:b, s:i}", "settings",
                     base_options_to_json(train_job_options, job), "run", job->run, "runs_dir",
                     job->runs_dir, "resume", job->resume, "quiet", job->quiet, "added",
                     job->added);
}

base_status train_job_from_json(const json_t *object, struct train_job *job_p)
{
    base_status st = BASE_OK;
    json_t *settings = NULL;

    *job_p = train_job_defaults;
    TRY(base_json_object(object, "settings", &settings));
    TRY(base_options_from_json(train_job_options, settings, job_p));
    TRY(base_json_string(object, "runs_dir", &job_p->runs_dir));
    job_p->run = json_string_value(json_object_get(object, "run"));
    job_p->resume = json_string_value(json_object_get(object, "resume"));
    job_p->quiet = json_is_true(json_object_get(object, "quiet"));
    job_p->added = (int)json_integer_value(json_object_get(object, "added"));
    if (job_p->added < 0 || job_p->added > job_p->add.count)
        TRY(base_fail(BASE_ERR_DATA, "%d of %d files are new", job_p->added, job_p->add.count));
out:
    return st;
}
