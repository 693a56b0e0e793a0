/* SPDX-License-Identifier: MIT
 *
 * A training job: everything a person can choose, as one struct and one table. The table is the
 * command line of `train`, the settings in run.json, and what --like and --resume read back.
 */
#ifndef TRAIN_JOB_H
#define TRAIN_JOB_H

#include "base/option.h"

struct train_job {
    const char *model, *data;
    int64_t epochs, steps, batch, accumulate;
    const char *optimiser;
    double lr, momentum, weight_decay, beta1, beta2, epsilon, clip;
    bool nesterov;
    const char *schedule;
    double warmup, decay_every, decay, final_lr;
    double validation;
    int64_t patience;
    int64_t pad;
    bool flip, balanced, normalise;
    int64_t seed, threads;
    const char *strategy, *kernels;
    int64_t log_every, eval_every;
    bool test, checkpoint;
    int64_t checkpoint_every, keep;
    struct base_texts record;
    const char *init;
    /* About this call only: */
    const char *run, *runs_dir, *resume, *like;
    bool json, quiet;
};

extern const struct train_job train_job_defaults;
extern const struct base_option train_job_options[];

/* Settings that make no sense together, or are missing; names are checked where they are used. */
base_status train_job_check(const struct train_job *job);

/* May option `name` differ from the run that is resumed? */
bool train_job_may_change(const char *name);

#endif
