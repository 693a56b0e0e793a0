/* SPDX-License-Identifier: MIT */
#include "cli/train_choose.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/plan_profile.h"
#include "cluster/process.h"
#include "recsys/ratings.h"
#include "train/measure.h"
#include "train/session.h"

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

static const struct train_forecast *forecast_of(const struct train_forecasts *list,
                                                const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].text, text) == 0)
            return &list->at[i];
    return NULL;
}

base_status cli_train_choose_strategy(struct train_job *job, int workers, char **strategy_p)
{
    base_status st = BASE_OK;
    const struct train_task *task = train_task_of(job->model);
    const char *usual = train_strategy_auto(task, job->model, workers > 1).strategy;
    struct train_session session = {0};
    struct train_forecasts list = {0}, timed = {0};
    struct cli_profiles profiles;
    struct train_setting setting;
    const struct train_forecast *wanted;
    double rate;

    *strategy_p = NULL;
    if (!train_job_is_auto(job) || job->memory == 0 || workers == 1 || task->survey == NULL)
        return BASE_OK;
    TRY(train_forecast_open(job, &session));
    cli_setting(&session, workers, 0, 1, &profiles, &setting);
    TRY(train_forecast_make(&session, &setting, false, &list));
    wanted = forecast_of(&list, usual);
    if (wanted == NULL || wanted->fits)
        goto out;
    TRY(train_measure_memory(cluster_cores(), &rate));
    setting.memory_rate = rate;
    TRY(train_forecast_make(&session, &setting, true, &timed));
    if (timed.choice == NULL) /* the refusal tells what would fit */
        goto out;
    base_info("strategy %s (auto): %s needs %sB a worker, --memory gives it %sB; of those that fit "
              "and have the losses of one worker it is the fastest, by a short measurement",
              timed.choice->text, usual, base_scaled(wanted->worker).text,
              base_scaled((double)job->memory).text);
    job->strategy = *strategy_p = base_strdup(timed.choice->text);
out:
    train_forecasts_fini(&list);
    train_forecasts_fini(&timed);
    if (session.job != NULL)
        train_session_close(&session);
    return st;
}
