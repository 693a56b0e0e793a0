/* SPDX-License-Identifier: MIT */
#include "cli/train_choose.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "cli/plan_parts.h"
#include "cluster/process.h"
#include "comm/transport.h"
#include "recsys/ratings.h"
#include "train/measure.h"

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
              "and have the losses of one worker it is the best, by a short measurement%s",
              timed.choice->text, usual, base_scaled(wanted->worker).text,
              base_scaled((double)job->memory).text, train_forecast_price(timed.choice));
    job->strategy = *strategy_p = base_strdup(timed.choice->text);
out:
    train_forecasts_fini(&list);
    train_forecasts_fini(&timed);
    if (session.job != NULL)
        train_session_close(&session);
    return st;
}

static base_status check_undecided(const struct train_job *job, const struct cluster_launch *launch)
{
    const struct comm_transport *transport =
        launch->transport == NULL
            ? NULL
            : base_registry_get(launch->transport, comm_transport_registry, comm_transport_count);

    if (job->resume != NULL || job->like != NULL)
        return base_fail(BASE_ERR_USAGE, "--workers auto is for new runs; with --resume and --like "
                                         "a run has as many workers as it had");
    if (launch->hosts > 1)
        return base_fail(BASE_ERR_USAGE, "--workers auto is for one host; say how many workers "
                                         "each host has");
    if (launch->min_workers > 1)
        return base_fail(BASE_ERR_USAGE,
                         "--workers auto may choose fewer than --min-workers %d; "
                         "say how many workers",
                         launch->min_workers);
    if (transport != NULL && transport->start != NULL)
        return base_fail(BASE_ERR_USAGE,
                         "--workers auto is not for --transport %s, whose launcher says how many",
                         transport->name);
    if (!train_job_is_auto(job))
        return base_fail(
            BASE_ERR_USAGE,
            "--workers auto chooses the strategy, too; leave out --strategy %s, or say "
            "how many workers",
            job->strategy);
    if (job->model == NULL || job->data == NULL)
        return base_fail(BASE_ERR_USAGE, "--workers auto needs --model and --data");
    return BASE_OK;
}

base_status cli_train_choose_workers(struct train_job *job, struct cluster_launch *launch,
                                     char **strategy_p)
{
    base_status st = BASE_OK;
    struct cli_plan *plan = base_calloc(1, sizeof *plan);
    const struct cli_plan_part *chosen;
    char alone[64] = "one worker does not fit";

    *strategy_p = NULL;
    TRY(check_undecided(job, launch));
    st = cli_plan_make(job, 0, 0, plan);
    if (plan->session.closed || plan->session.task->survey == NULL)
        st = base_prefix(st, "leave out --workers auto");
    TRY(st);
    if ((chosen = plan->chosen) == NULL)
        TRY(base_fail(BASE_ERR_MEMORY, "no strategy that --workers auto chooses from fits on this "
                                       "host; `paceline plan` tells what each needs"));
    if (plan->parts[0].forecasts.choice != NULL)
        snprintf(alone, sizeof alone, "one worker: %.0f", 1 / cli_plan_pace(&plan->parts[0]));
    launch->workers = chosen->setting.workers;
    launch->undecided = false;
    job->threads = chosen->setting.threads;
    job->strategy = *strategy_p = base_strdup(chosen->forecasts.choice->text);
    base_info("%d worker%s of %d thread%s, strategy %s (auto): by a short measurement the best "
              "that fits and has the losses of one worker, %.0f samples/s (%s)%s",
              launch->workers, base_plural(launch->workers), chosen->setting.threads,
              base_plural(chosen->setting.threads), job->strategy, 1 / cli_plan_pace(chosen), alone,
              train_forecast_price(chosen->forecasts.choice));
out:
    cli_plan_fini(plan);
    base_free(plan);
    return st;
}
