/* SPDX-License-Identifier: MIT
 *
 * Training and evaluation as calls: what `paceline train` and `paceline eval` do.
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "base/json.h"
#include "cluster/worker.h"
#include "recsys/quality.h"
#include "train/job.h"

/* Runs a job to its end, or until the person asks to stop: that saves, tells how to resume and is
 * no failure. In this process alone (worker NULL), or as one of a job's workers. result_p: the
 * object of docs/json.md. */
base_status train_job_run(const struct train_job *job, struct cluster_worker *worker,
                          json_t **result_p);

struct train_eval {
    const char *checkpoint; /* run name or folder, checkpoints folder, step-N folder */
    const char *runs_dir;
    const char *data; /* NULL: the data the run was trained on */
    const char *part; /* "test" or "train" */
    int64_t batch, threads;
    int64_t skip_bad; /* as in a training; -1: what the run has for its own data, 0 for other */
    bool best;
    /* Of images: how often this mark makes the target class of others; NULL: not asked. */
    const char *trigger, *target;
    /* Of rating models: judge lists of so many items, too; 0: no. `draw` makes pictures of guesses
     * in the folder `pictures`; NULL: none. */
    int64_t lists;
    const char *pictures;
    base_status (*draw)(const struct recsys_fit *fit, const struct recsys_rows *test,
                        const struct recsys_quality *quality, const char *dir);
};

/* The result as an object (docs/json.md) and as a text for people; base_free. */
base_status train_eval_run(const struct train_eval *eval, json_t **result_p, char **text_p);

#endif
