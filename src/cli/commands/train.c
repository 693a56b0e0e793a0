/* SPDX-License-Identifier: MIT
 *
 * paceline train: the options are the job's own table (train/job.h). One worker is this process;
 * several are started by it, which is then their agent.
 */
#include "train/train.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/stop.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/train_check.h"
#include "cli/train_choose.h"
#include "cli/train_watch.h"
#include "comm/transport.h"
#include "train/run.h"
#include "train/shares_plan.h"
#include "train/slow.h"
#include "train/strategy.h"

/* A resumed run's images stay as they were, whatever files of which sizes there are by now. */
static void keep_shape(const struct model_about *about)
{
    char size[32];

    snprintf(size, sizeof size, "%dx%d", about->input.h, about->input.w);
    json_object_set_new(about->settings, "image-size", json_string(size));
    json_object_set_new(about->settings, "channels", json_string(about->input.c == 1 ? "1" : "3"));
}

/* Option `name` was given for the run that is resumed. */
static base_status check_change(const struct train_job *job, const char *name)
{
    enum train_change may = train_job_may_change(name);

    if (may == TRAIN_CHANGE_FREE || (may == TRAIN_CHANGE_OVERRIDE && job->override))
        return BASE_OK;
    return base_fail(
        BASE_ERR_USAGE,
        "--%s cannot change in a resumed run%s; --like %s --init %s --%s … starts anew "
        "from its weights",
        name, may == TRAIN_CHANGE_OVERRIDE ? " without --override" : "", job->resume, job->resume,
        name);
}

/* A run like one whose kernels were timed computes with the same, so that it gives the same bits;
 * unless the shapes are others, or the kernels are asked for. */
static void keep_kernels(struct model_about *about, const struct cli_positional *positional)
{
    static const char *const others[] = {"model",      "data",    "image-size",
                                         "channels",   "batch",   "batch-per-worker",
                                         "accumulate", "kernels", "tune"};

    if (!json_is_true(json_object_get(about->settings, "tune")))
        return;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (cli_given(positional, others[i]))
            return;
    json_object_set_new(about->settings, "kernels", json_string(about->kernels));
    json_object_set_new(about->settings, "tune", json_false());
}

/* --add: after what the run has. Absolute, since it may be resumed from another folder. */
static base_status inherit_added(struct train_job *job, json_t *settings)
{
    base_status st = BASE_OK;
    json_t *all = json_object_get(settings, "add");

    if (!json_is_array(all))
        json_object_set_new(settings, "add", all = json_array());
    if (json_array_size(all) + (size_t)job->add.count > BASE_MAX_TEXTS)
        TRY(base_fail(BASE_ERR_USAGE,
                      "a run takes up to %d files with --add and has %zu; make one of the new ones",
                      BASE_MAX_TEXTS, json_array_size(all)));
    for (int i = 0; i < job->add.count; i++) {
        char *path = realpath(job->add.at[i], NULL);

        if (path == NULL)
            TRY(base_fail(BASE_ERR_IO, "--add: cannot open %s: %m", job->add.at[i]));
        json_array_append_new(all, json_string(path));
        free(path);
    }
out:
    return st;
}

/* --resume and --like: a run's settings, under what was given on the command line. */
static base_status inherit(struct train_job *job, const struct cli_positional *positional,
                           struct train_run *run)
{
    const char *from = job->resume != NULL ? job->resume : job->like;
    struct train_job inherited = train_job_defaults;
    struct model_about about = {0};
    struct base_option row;
    base_status st = BASE_OK;

    if (job->resume != NULL && job->like != NULL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--resume and --like exclude each other: --like starts anew"));
    TRY(train_run_open(job->runs_dir, from, run));
    TRY(train_run_about(run, &about));
    /* The run may be called from another folder; run->json keeps the text. */
    json_object_set_new(about.settings, "data", json_string(model_about_place(&about)));
    if (job->resume != NULL && strcmp(about.format, "folder") == 0)
        keep_shape(&about);
    if (job->like != NULL)
        keep_kernels(&about, positional);
    TRY(inherit_added(job, about.settings));
    inherited.added = job->add.count;
    TRY(base_prefix(base_options_from_json(train_job_options, about.settings, &inherited),
                    "%s/run.json", run->path));
    for (size_t i = 0; base_option_at(train_job_options, i, &row); i++) {
        bool was_given = cli_given(positional, row.name);

        if (was_given && job->resume != NULL && !row.local)
            TRY(check_change(job, row.name));
        if ((was_given && strcmp(row.name, "add") != 0) || row.local)
            base_option_copy(&row, job, &inherited);
    }
    *job = inherited; /* its texts are those of run->json */
out:
    model_about_fini(&about);
    return st;
}

/* How the run was started: workers of each host, 0 where hosts had different numbers. A run.json
 * that does not tell counts as one of one worker. */
static base_status read_launch(const struct train_run *run, int64_t *workers_p, int64_t *hosts_p)
{
    base_status st = BASE_OK;
    const json_t *launch = json_object_get(run->json, "launch");

    *workers_p = *hosts_p = 1;
    if (launch == NULL)
        return BASE_OK;
    TRY(base_json_integer(launch, "workers", workers_p));
    TRY(base_json_integer(launch, "hosts", hosts_p));
    if (*workers_p < 0 || *workers_p > COMM_MAX_WORKERS || *hosts_p < 1 ||
        *hosts_p > COMM_MAX_WORKERS)
        TRY(base_fail(BASE_ERR_DATA, "a launch of %lld workers on %lld hosts",
                      (long long)*workers_p, (long long)*hosts_p));
out:
    return base_prefix(st, "%s/run.json", run->path);
}

/* A run that had several hosts needs a person to start them. */
static void hint_at_hosts(int64_t workers, int64_t hosts)
{
    char each[64] = "";

    if (workers > 0)
        snprintf(each, sizeof each, " --workers %lld", (long long)workers);
    base_warn(
        "this run had %lld hosts and goes on with this one; to have them all, start it on each "
        "with --num-nodes %lld --rank R --master-ip IP%s",
        (long long)hosts, (long long)hosts, each);
}

/* --resume and --like: as many workers as the run had, unless flags or a launcher say how many; and
 * its number of threads where all is as it was. */
static base_status restore_launch(struct train_job *job, const struct train_run *run,
                                  bool threads_given, struct cluster_launch *launch)
{
    base_status st = BASE_OK;
    const struct train_strategy *strategy;
    void *options = NULL;
    int64_t workers, hosts;
    bool told = strcmp(launch->source, "flags") != 0 || job->cluster.workers > 0 ||
                job->cluster.num_nodes > 0;

    TRY(read_launch(run, &workers, &hosts));
    TRY(train_strategy_find(train_job_strategy(job, true), &strategy, &options));
    if (!told && !strategy->alone) {
        launch->workers = workers > 0 ? (int)workers : 1;
        if (hosts > 1)
            hint_at_hosts(workers, hosts);
    }
    if (!threads_given && (launch->workers != workers || launch->hosts != hosts))
        job->threads = 0;
out:
    base_free(options);
    return st;
}

/* Does this process need the run that is resumed? Other hosts get host 0's job; without an agent
 * every process reads the run. */
static bool inherits(const struct train_job *job, const struct cluster_launch *launch)
{
    const struct comm_transport *transport =
        launch->transport == NULL
            ? NULL
            : base_registry_get(launch->transport, comm_transport_registry, comm_transport_count);

    return (job->resume != NULL || job->like != NULL) &&
           (launch->host == 0 || (transport != NULL && transport->start != NULL));
}

static base_status run_workers(const struct train_job *job, const struct cluster_launch *launch,
                               json_t **result_p)
{
    base_status st = BASE_OK;
    struct cluster_setup setup = {.program = "train",
                                  .programs = cluster_program_registry,
                                  .joins = true,
                                  .restarts = job->restart,
                                  .one_speaks = true,
                                  .steps = true,
                                  .tells_folder = true,
                                  .on_folder = job->on_folder};

    if (launch->host == 0) /* whose job counts; a run's settings are there alone */
        TRY(cli_train_check(job, launch->hosts * launch->workers, &setup.least));
    setup.launch = *launch;
    setup.launch.threads = (int)job->threads;
    if (inherits(job, launch) || (job->resume == NULL && job->like == NULL))
        setup.job = train_job_to_json(job);
    TRY(cli_cluster_run(&setup, result_p));
out:
    json_decref(setup.job);
    return st;
}

/* Nothing that needs an agent: no second worker, now or later, and nothing between workers. */
static bool runs_here(const struct train_job *job, const struct cluster_launch *launch)
{
    const char *strategy = train_job_strategy(job, false);

    return launch->hosts == 1 && launch->workers == 1 && !launch->listens &&
           (strcmp(strategy, "single") == 0 || strcmp(strategy, "rows") == 0);
}

/* Options that the model's task has no use for are mistakes. */
static base_status check_options(const struct train_job *job,
                                 const struct cli_positional *positional)
{
    const struct train_task *task = train_task_of(job->model);
    struct base_option row;

    for (size_t i = 0; base_option_at(train_job_options, i, &row); i++) {
        const enum train_use use = train_job_use(row.name);

        if (use == TRAIN_USE_ANY || (task->uses & use) != 0 || !cli_given(positional, row.name))
            continue;
        if (use == TRAIN_USE_RATINGS)
            return base_fail(BASE_ERR_USAGE, "--%s is for rating models; %s is a network", row.name,
                             job->model);
        return base_fail(
            BASE_ERR_USAGE,
            "--%s is for %s; %s is a rating model, whose own options follow its name, "
            "as in %s",
            row.name, use == TRAIN_USE_SAMPLES ? "networks on images and tables" : "networks",
            job->model, task->sweeps != NULL ? "bmf:k=32,sweeps=200" : "ncf:size=16,layers=32");
    }
    return BASE_OK;
}

/* What is refused before data is read. Other hosts get host 0's job, and processes of a launcher
 * may find the run that one of them has made. */
static base_status check_names(const struct train_job *job, const struct cluster_launch *launch)
{
    base_status st = BASE_OK;
    const bool alone = launch->hosts == 1 && strcmp(launch->source, "flags") == 0;

    if (job->model != NULL && job->resume == NULL && launch->host == 0 &&
        strcmp(job->model, TRAIN_AUTO) != 0)
        TRY(cli_train_model(job->model));
    if (job->run != NULL && job->resume == NULL && alone)
        TRY(train_run_check(job->runs_dir, job->run));
out:
    return st;
}

/* What the task prefers, where the person has not said anything. */
static base_status take_preferences(struct train_job *job, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct train_preference *p = train_task_of(job->model)->prefers;
    struct base_option row;

    for (; p != NULL && p->option != NULL; p++)
        if (!cli_given(positional, p->option) &&
            base_option_find(train_job_options, p->option, strlen(p->option), &row) >= 0)
            TRY(base_option_set(&row, "--", p->value, job));
out:
    return st;
}

/* Workers do not know --min-workers, so that the job tells them how many stay; base_free. */
static base_status settle_eviction(struct train_job *job, const struct cluster_launch *launch,
                                   char **text_p)
{
    base_status st = BASE_OK;
    struct train_slow_policy policy;
    struct base_str text = {0};

    *text_p = NULL;
    TRY(train_slow_parse(job->on_slow, &policy));
    if (policy.action != TRAIN_SLOW_EVICT)
        goto out;
    if (launch->min_workers == 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--on-slow evict needs --min-workers: how few workers may be left"));
    base_str_add(&text, "evict:%d", launch->min_workers);
    job->on_slow = *text_p = text.text;
out:
    return st;
}

static base_status cmd_train(void *args, const struct cli_positional *positional)
{
    struct train_job *job = args;
    struct cluster_launch launch;
    struct train_run from = {0};
    json_t *result = NULL;
    char *strategy = NULL, *shares = NULL, *on_slow = NULL;
    base_status st = BASE_OK;

    if (job->quiet)
        base_log_level(BASE_WARN);
    if (job->add.count > 0 && job->resume == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "--add is for --resume alone; a new run has all of its "
                                      "ratings in --data"));
    TRY(cluster_launch_find(&job->cluster, &launch));
    if (inherits(job, &launch)) {
        TRY(inherit(job, positional, &from));
        if (job->like != NULL && strcmp(job->shares, TRAIN_SHARES_RECORDED) == 0) {
            TRY(train_shares_recorded(&from, &shares));
            job->shares = shares;
        }
        TRY(restore_launch(job, &from, cli_given(positional, "threads"), &launch));
    }
    job->on_folder = job->watch ? cli_train_watch_begin : NULL;
    TRY(check_names(job, &launch));
    TRY(settle_eviction(job, &launch, &on_slow));
    if (job->model != NULL && strcmp(job->model, TRAIN_AUTO) == 0)
        TRY(cli_train_choose(job));
    if (job->model != NULL) {
        TRY(check_options(job, positional));
        if (job->resume == NULL && job->like == NULL)
            TRY(take_preferences(job, positional));
    }
    if (launch.undecided)
        TRY(cli_train_choose_workers(job, &launch, &strategy));
    else if (launch.hosts == 1 && job->resume == NULL && job->model != NULL && job->data != NULL)
        TRY(cli_train_choose_strategy(job, launch.workers, &strategy));
    if (runs_here(job, &launch))
        TRY(train_job_run(job, NULL, &result));
    else
        TRY(run_workers(job, &launch, &result));
    if (json_is_true(json_object_get(result, "interrupted")))
        base_stop_ask(SIGTERM); /* where another host of the job got the signal */
    else if (result != NULL)
        base_stop_late();
    if (job->json && result != NULL)
        TRY(base_json_print(result));
out:
    cli_train_watch_end();
    json_decref(result);
    base_free(strategy);
    base_free(shares);
    base_free(on_slow);
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
                "  paceline train --model lda --data flowers.csv --target species\n"
                "  paceline train --model vgg11 --data cifar10 --workers 2 --strategy allreduce\n"
                "  paceline train --model vgg11 --data cifar10 --watch     # and a live page\n"
                "  paceline train --model bmf --data ratings.csv          # who likes what\n"
                "  paceline train --resume vgg11-cifar10-1 --epochs 30\n"
                "  paceline train --resume bmf-ratings-1 --add new.csv    # more ratings\n"
                "  paceline train --like vgg11-cifar10-1 --lr 0.1\n",
    .options = train_job_options,
    .args_size = sizeof(struct train_job),
    .defaults = &train_job_defaults,
    .run = cmd_train,
};
