/* SPDX-License-Identifier: MIT */
#include "cli/train_check.h"

#include "base/mem.h"
#include "cli/cli.h"
#include "nn/conv/kernelplan.h"
#include "nn/zoo.h"
#include "recsys/model.h"
#include "train/strategy.h"

base_status cli_train_check(const struct train_job *job, int workers, int *least_p)
{
    base_status st = BASE_OK;
    const struct train_strategy *strategy = NULL;
    const struct train_task *task = train_task_of(job->model);
    const struct recsys_model *rating_model = NULL;
    void *options = NULL, *rating_options = NULL;
    char *model = NULL;

    TRY(train_job_check(job));
    TRY(train_strategy_find(train_job_strategy(job, true), &strategy, &options));
    TRY(train_strategy_serves(strategy, workers));
    TRY(train_strategy_trains(strategy, task));
    TRY(train_strategy_aggregates(strategy, job->aggregate));
    TRY(train_strategy_attacked(strategy, job));
    TRY(train_strategy_shares(strategy, job->shares));
    TRY(nn_kernelplan_check(job->kernels));
    if (job->resume == NULL) /* a run has its model with it */
        TRY(task->takes != NULL ? recsys_model_find(job->model, &rating_model, &rating_options)
                                : nn_model_text(job->model, &model));
    *least_p = strategy->least;
out:
    base_free(model);
    base_free(options);
    base_free(rating_options);
    return st;
}

base_status cli_train_words(char **words, struct train_job *job_p)
{
    base_status st = BASE_OK;
    const struct cli_command *train = NULL;
    struct cli_positional positional = {0};
    bool help = false;
    int count = 0, least;

    while (words[count] != NULL)
        count++;
    *job_p = train_job_defaults;
    TRY(cli_find("train", &train));
    TRY(cli_parse(train, count, words, job_p, &positional, &help));
    TRY(cli_train_check(job_p, job_p->cluster.workers > 0 ? (int)job_p->cluster.workers : 1,
                        &least));
out:
    cli_positional_fini(&positional);
    return st;
}
