/* SPDX-License-Identifier: MIT
 *
 * A training job: everything a person can choose, as one struct and one table. The table is the
 * command line of `train`, the settings in run.json, and what --like and --resume read back.
 */
#ifndef TRAIN_JOB_H
#define TRAIN_JOB_H

#include "base/option.h"
#include "cluster/launch.h"
#include "data/dataset.h"

struct train_job {
    const char *model, *data;
    int64_t epochs, steps, batch, batch_per_worker, accumulate;
    const char *optimiser;
    double lr, momentum, weight_decay, beta1, beta2, epsilon, clip;
    bool nesterov;
    const char *schedule;
    double warmup, decay_every, decay, final_lr;
    double validation, test_share;
    int64_t patience;
    const char *target; /* NULL: the last column */
    struct base_texts columns;
    const char *split, *rating_columns, *separator; /* of ratings; NULL: the usual */
    bool strict;
    const char *exclude;               /* an index of samples or users to leave out; NULL: none */
    struct base_texts add;             /* ratings that came after those of `data` … */
    int added;                         /* … of which this call brings the last so many */
    const char *image_size, *channels; /* NULL: as the data decides */
    const char *crop;
    int64_t skip_bad, pad;
    bool flip, balanced, normalise, sync_bn;
    int64_t seed, threads, memory;
    const char *strategy, *kernels; /* strategy NULL: by the number of workers */
    const char *shares;             /* of workers in a batch: auto, even, speed */
    const char *attack;             /* NULL: no worker attacks */
    const char *on_slow;            /* what to do about a worker that has become slow */
    const char *aggregate;          /* NULL: the usual one of a strategy that has use for it */
    bool tune;
    int64_t log_every, eval_every;
    bool test, checkpoint;
    int64_t checkpoint_every, keep;
    struct base_texts record;
    const char *record_samples; /* NULL: the first few */
    bool tensorboard;
    const char *init;
    /* About this call only: */
    const char *run, *runs_dir, *resume, *like;
    bool override, json, quiet, restart, watch, yes_attack;
    void (*on_folder)(const char *path); /* called once the run has a folder; NULL: not */
    struct cluster_flags cluster;
};

/* For the arguments of commands that a job is a part of. */
#define TRAIN_JOB_DEFAULTS                                                                         \
    {                                                                                              \
        .epochs = 5, .steps = -1, .batch = 64, .accumulate = 1, .optimiser = "sgd", .lr = 0.01,    \
        .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .schedule = "constant",    \
        .decay_every = 10, .decay = 0.1, .crop = "none", .test_share = DATA_TEST_SHARE,            \
        .normalise = true, .seed = 1, .strategy = TRAIN_AUTO, .shares = "auto", .on_slow = "tell", \
        .kernels = "auto", .log_every = -1, .eval_every = -1, .test = true, .checkpoint = true,    \
        .keep = 3, .runs_dir = "runs", .cluster = CLUSTER_FLAGS,                                   \
    }
extern const struct train_job train_job_defaults;
extern const struct base_option train_job_options[];

/* Settings that make no sense together, or are missing; the table checks each by itself. */
base_status train_job_check(const struct train_job *job);

/* --image-size in pixels; 0 where it is not given. */
base_status train_job_image_size(const struct train_job *job, int *height_p, int *width_p);

/* --crop. */
enum data_crop train_job_crop(const struct train_job *job);

/* Is the strategy ours to choose? */
bool train_job_is_auto(const struct train_job *job);
/* The strategy that was asked for, or the chosen one of a job with several workers or one. */
const char *train_job_strategy(const struct train_job *job, bool several);

/* The job as workers are told it, and back; texts point into `object`. */
json_t *train_job_to_json(const struct train_job *job);
base_status train_job_from_json(const json_t *object, struct train_job *job_p);

/* May option `name` differ from the run that is resumed? OVERRIDE: what is computed would be
 * another training than the one that began, which a person must ask for. */
enum train_change { TRAIN_CHANGE_NEVER, TRAIN_CHANGE_OVERRIDE, TRAIN_CHANGE_FREE };
enum train_change train_job_may_change(const char *name);

/* What option `name` is about: how steps are made, samples and layers of networks, ratings. Tasks
 * say which of these they have a use for (train/task.h). */
enum train_use {
    TRAIN_USE_ANY = 0,
    TRAIN_USE_STEPS = 1,
    TRAIN_USE_SAMPLES = 2,
    TRAIN_USE_RATINGS = 4,
};
enum train_use train_job_use(const char *name);

#endif
