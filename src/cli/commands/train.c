/* SPDX-License-Identifier: MIT
 *
 * paceline train: the options are the job's own table (train/job.h).
 */
#include "train/train.h"
#include "base/log.h"
#include "cli/cli.h"
#include "train/run.h"

/* --resume and --like: a run's settings, under what was given on the command line. */
static base_status inherit(struct train_job *job, uint64_t given, struct train_run *run)
{
    const char *from = job->resume != NULL ? job->resume : job->like;
    struct train_job inherited = train_job_defaults;
    json_t *about = NULL, *settings = NULL;
    base_status st = BASE_OK;

    if (job->resume != NULL && job->like != NULL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--resume and --like exclude each other: --like starts anew"));
    TRY(train_run_open(job->runs_dir, from, run));
    TRY(base_prefix(base_json_object(run->json, "about", &about), "%s/run.json", run->path));
    TRY(base_prefix(base_json_object(about, "settings", &settings), "%s/run.json", run->path));
    TRY(base_prefix(base_options_from_json(train_job_options, settings, &inherited), "%s/run.json",
                    run->path));
    for (size_t i = 0; i < base_options_count(train_job_options); i++) {
        const struct base_option *option = &train_job_options[i];
        bool was_given = (given >> i & 1) != 0;

        if (was_given && job->resume != NULL && !option->local &&
            !train_job_may_change(option->name))
            TRY(base_fail(BASE_ERR_USAGE,
                          "--%s cannot change in a resumed run; start anew with --like %s --%s …",
                          option->name, from, option->name));
        if (was_given || option->local)
            base_option_copy(option, job, &inherited);
    }
    *job = inherited;
out:
    return st;
}

static base_status run(void *args, const struct cli_positional *positional)
{
    struct train_job *job = args;
    struct train_run from = {0};
    json_t *result = NULL;
    base_status st = BASE_OK;

    if (job->quiet)
        base_log_level(BASE_WARN);
    if (job->resume != NULL || job->like != NULL)
        TRY(inherit(job, positional->given, &from));
    TRY(train_job_run(job, &result));
    if (job->json)
        TRY(base_json_print(result));
out:
    json_decref(result);
    train_run_close(&from); /* owns the inherited texts */
    return st;
}

const struct cli_command cli_command_train = {
    .name = "train",
    .help = "train a model",
    .usage = "paceline train --model M --data D [options]",
    .examples = "  paceline train --model mnist-cnn --data fashion-mnist --epochs 2\n"
                "  paceline train --model vgg11 --data cifar10 --batch 128 --lr 0.05 \\\n"
                "      --schedule one-cycle --pad 4 --flip --epochs 20\n"
                "  paceline train --model mlp:64x2 --data synthetic --optimiser adamw --lr 0.001\n"
                "  paceline train --resume vgg11-cifar10-1 --epochs 30\n"
                "  paceline train --like vgg11-cifar10-1 --lr 0.1\n",
    .options = train_job_options,
    .args_size = sizeof(struct train_job),
    .defaults = &train_job_defaults,
    .run = run,
};
