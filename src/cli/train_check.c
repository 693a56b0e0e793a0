/* SPDX-License-Identifier: MIT */
#include "cli/train_check.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "data/get.h"
#include "nn/conv/kernelplan.h"
#include "nn/zoo.h"
#include "recsys/model.h"
#include "train/strategy.h"

static base_status unknown_model(const char *model)
{
    const size_t count = nn_zoo_count + recsys_model_count;
    const char **names = base_calloc(count, sizeof *names);
    char *name = base_strndup(model, strcspn(model, ":"));
    base_status st;

    for (size_t i = 0; i < count; i++)
        names[i] = i < nn_zoo_count ? nn_zoo_registry[i]->name
                                    : recsys_model_registry[i - nn_zoo_count]->name;
    st = base_unknown(BASE_ERR_USAGE, "model (no such file either)", name, names, count);
    base_free(names);
    base_free(name);
    return st;
}

base_status cli_train_model(const char *model)
{
    base_status st = BASE_OK;
    const struct recsys_model *rated = NULL;
    const char *arguments;
    void *options = NULL;
    char *text = NULL;

    if (train_task_of(model)->takes != NULL)
        TRY(recsys_model_find(model, &rated, &options));
    else if (nn_zoo_find(model, &arguments) == NULL && strchr(model, '/') == NULL &&
             !base_exists(model))
        TRY(unknown_model(model));
    else
        TRY(nn_model_text(model, &text));
out:
    base_free(options);
    base_free(text);
    return st;
}

base_status cli_train_check(const struct train_job *job, int workers, int *least_p)
{
    base_status st = BASE_OK;
    const struct train_strategy *strategy = NULL;
    void *options = NULL;

    TRY(train_job_check(job));
    if (job->resume == NULL) /* a run has its model with it */
        TRY(cli_train_model(job->model));
    TRY(train_strategy_find(train_job_strategy(job, true), &strategy, &options));
    TRY(train_strategy_serves(strategy, workers));
    TRY(train_strategy_trains(strategy, train_task_of(job->model)));
    TRY(train_strategy_aggregates(strategy, job->aggregate));
    TRY(train_strategy_shares(strategy, job->shares, workers));
    TRY(train_strategy_attacked(strategy, job));
    TRY(nn_kernelplan_check(job->kernels));
    *least_p = strategy->least;
out:
    base_free(options);
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

base_status cli_train_fetch(const char *data)
{
    base_status st = BASE_OK;
    bool present = true;
    char *path = NULL;

    if (data_get_knows(data)) {
        TRY(data_get_folder(data, &present, &path));
        if (!present)
            TRY(data_get(data));
    }
out:
    base_free(path);
    return st;
}
