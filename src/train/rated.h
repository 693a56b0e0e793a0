/* SPDX-License-Identifier: MIT
 *
 * The ratings of a training, as the job says they are read and divided: what tasks with rating
 * models share.
 */
#ifndef TRAIN_RATED_H
#define TRAIN_RATED_H

#include "model/about.h"
#include "recsys/model.h"
#include "recsys/split.h"
#include "train/job.h"

struct train_rated { /* zeros: nothing is open */
    struct recsys_ratings *set;
    char *path;                          /* where the set is, absolute */
    char former_digest[BASE_SHA256_HEX]; /* of it before this call added ratings; "": it did not */
    char excluded[BASE_SHA256_HEX];      /* digest of the index of --exclude; "": none */
    struct recsys_division parts;
    struct base_team *team;
};

/* What the call adds (job->added) must be new, and on the scale of what is there. */
base_status train_rated_open(struct train_rated *rated, const struct train_job *job, int threads);
void train_rated_close(struct train_rated *rated); /* accepts half-opened */

/* (users) those that the index of --exclude lists, and that index's digest ("": none, and NULL);
 * base_free. */
base_status train_rated_excluded(const struct recsys_ratings *set, const struct train_job *job,
                                 char digest[BASE_SHA256_HEX], bool **excluded_p);

/* The rating model that --model names; NULL: it is none. */
const struct recsys_model *train_rated_model(const char *text);
/* A fit of the model on the training part, without memory. *options_p: base_free after it. */
base_status train_rated_fit(const struct train_rated *rated, const struct train_job *job,
                            const char *text, void **options_p, struct recsys_fit **fit_p);
/* What checkpoints say of the model; takes over `settings`. */
void train_rated_about(const struct train_rated *rated, const struct train_job *job,
                       const struct recsys_fit *fit, const char *text, json_t *settings,
                       struct model_about *about_p);

#endif
