/* SPDX-License-Identifier: MIT */
#include "cli/train_choose.h"

#include "base/log.h"
#include "base/mem.h"
#include "recsys/ratings.h"

/* Up to here bmf is done within an hour on two cores. */
static const uint64_t MOST_FOR_BMF = 25000000;

base_status cli_train_choose(struct train_job *job)
{
    base_status st = BASE_OK;
    const struct recsys_options options = {.columns = job->rating_columns,
                                           .separator = job->separator,
                                           .threads = (int)job->threads,
                                           .strict = job->strict};
    struct recsys_ratings *ratings = NULL;
    const char *why;
    char *path = NULL;

    if (job->data == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "--data is missing: a file or folder of ratings"));
    TRY(recsys_ratings_path(job->data, &path));
    if (job->rating_columns == NULL && !recsys_is_ratings(path))
        TRY(base_fail(BASE_ERR_USAGE,
                      "--model auto chooses between rating models, and %s has no ratings; name a "
                      "network such as mnist-cnn",
                      job->data));
    TRY(recsys_ratings_open(path, &options, &ratings));
    if (ratings->scale.levels == 1) {
        job->model = "ials";
        why = "all ratings are alike and tell only who chose what";
    } else if (ratings->count > MOST_FOR_BMF) {
        job->model = "mf";
        why = "the fastest, for so many ratings";
    } else {
        job->model = "bmf";
        why = "the most accurate";
    }
    base_info("model %s (auto): %s; %llu ratings", job->model, why,
              (unsigned long long)ratings->count);
out:
    recsys_ratings_close(ratings);
    base_free(path);
    return st;
}
