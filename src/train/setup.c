/* SPDX-License-Identifier: MIT
 *
 * From a job to a session: data, model, state. Everything that can be refused is refused before the
 * run folder is made (lead.c). With several workers rank 0 does this alone; enter.c hands the
 * outcome to the others, and fit.c makes everybody's memory for its share.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/model.h"
#include "nn/simd/simd.h"
#include "nn/threads.h"
#include "nn/zoo.h"
#include "train/train_private.h"

static base_status open_data(struct train_session *s)
{
    const struct train_job *job = s->job;
    const struct data_options options = {
        .validation = job->validation,
        .seed = (uint64_t)job->seed,
        .unit_range = !job->normalise,
    };
    base_status st = data_open(job->data, &options, &s->set);

    if (st != BASE_OK)
        return st;
    s->info = data_describe(s->set);
    if (s->info->count[DATA_TRAIN] == 0)
        return base_fail(BASE_ERR_DATA, "%s has no training samples", job->data);
    if (job->validation > 0 && s->info->count[DATA_VALIDATION] == 0)
        return base_fail(BASE_ERR_DATA, "--validation %g of %u samples leaves none to validate",
                         job->validation, s->info->count[DATA_TRAIN]);
    return BASE_OK;
}

static base_status describe_model(struct train_session *s, const char *text)
{
    struct nn_shape input = {.c = s->info->channels, .h = s->info->height, .w = s->info->width};

    base_status st = nn_graph_new(text, s->job->model, input, s->info->classes, &s->graph);
    char *message = base_strdup(base_message());

    if (st != BASE_OK)
        st = base_fail(st, "%s (the data is %s: %dx%dx%d, %d classes)", message, s->job->data,
                       s->info->channels, s->info->height, s->info->width, s->info->classes);
    base_free(message);
    return st;
}

static base_status initial_weights(struct train_session *s)
{
    const struct train_job *job = s->job;
    base_status st = BASE_OK;
    char *path = NULL;

    nn_graph_start(s->graph, (uint64_t)job->seed, s->state.weights, s->state.statistics);
    if (job->init == NULL)
        goto out;
    TRY(base_prefix(model_find_weights(job->init, job->runs_dir, &path), "--init %s", job->init));
    TRY(train_state_load_weights(&s->state, path, true));
    base_info("weights from %s", path);
out:
    base_free(path);
    return st;
}

static base_status choose(struct train_session *s)
{
    const struct nn_optimiser *optimiser = NULL;
    base_status st = BASE_OK;
    int layer = -1;

    TRY(nn_optimiser_find(s->job->optimiser, &optimiser));
    TRY(nn_schedule_find(s->job->schedule, &s->schedule));
    for (int i = 0; i < s->job->record.count; i++)
        TRY(base_prefix(nn_graph_find(s->graph, s->job->record.at[i], &layer), "--record"));
    TRY(train_state_init(&s->state, s->graph, optimiser));
out:
    return st;
}

static void plan_steps(struct train_session *s)
{
    const struct train_job *job = s->job;
    int64_t count = s->info->count[DATA_TRAIN];

    s->steps_per_epoch = (count + s->batch - 1) / s->batch;
    s->last_step = job->steps >= 0 ? job->steps : job->epochs * s->steps_per_epoch;
    s->schedule_setup = (struct nn_schedule_setup){
        .total = (uint64_t)s->last_step,
        .warmup = (uint64_t)(job->warmup * (double)s->steps_per_epoch),
        .period = (uint64_t)(job->decay_every * (double)s->steps_per_epoch),
        .decay = job->decay,
        .final_factor = job->final_lr,
    };
    if (s->schedule_setup.period == 0)
        s->schedule_setup.period = 1;
}

/* A finished run has nothing to resume, and its results are not to be written over. */
static base_status check_unfinished(struct train_session *s)
{
    const struct train_position *p = &s->state.position;

    s->stopped_early = train_session_stale(s);
    if (s->job->resume == NULL || strcmp(train_run_status(s->run.json), "done") != 0)
        return BASE_OK;
    if (s->stopped_early)
        return base_fail(BASE_ERR_USAGE,
                         "run %s is done: %lld epochs brought no better validation loss; to go on "
                         "raise --patience",
                         s->run.name, (long long)p->stale_epochs);
    if (p->step >= s->last_step)
        return base_fail(BASE_ERR_USAGE,
                         "run %s is done after step %lld; to go on raise --epochs or --steps",
                         s->run.name, (long long)p->step);
    return BASE_OK;
}

/* The run to resume: its folder, model text, and newest checkpoint that verifies. */
static base_status load_resumed(struct train_session *s, const char *digest)
{
    struct store_checkpoint checkpoint = {0};
    base_status st = BASE_OK;

    if (strcmp(digest, s->info->digest) != 0)
        TRY(base_fail(BASE_ERR_DATA,
                      "%s is not the data that run %s was trained on (its digest "
                      "changed); start anew with --init %s",
                      s->job->data, s->run.name, s->run.name));
    s->saved_step = -1;
    if (!store_has_checkpoint(s->run.checkpoints)) {
        base_info("run %s has no checkpoint yet: it starts from the beginning", s->run.name);
        TRY(initial_weights(s));
        goto out;
    }
    TRY(store_checkpoint_open(s->run.checkpoints, false, &checkpoint));
    TRY(train_state_load(&s->state, &checkpoint));
    if (s->state.position.cursor > s->info->count[DATA_TRAIN])
        TRY(base_fail(BASE_ERR_DATA, "%s stands behind the last of the %u training samples",
                      checkpoint.path, s->info->count[DATA_TRAIN]));
    s->saved_step = s->state.position.step;
    base_info("run %s goes on after step %lld", s->run.name, (long long)s->state.position.step);
out:
    store_checkpoint_close(&checkpoint);
    return st;
}

/* about_p: what run.json says of a run that is resumed; otherwise zeros. */
static base_status open_model(struct train_session *s, struct model_about *about_p)
{
    base_status st = BASE_OK;
    char *text = NULL;

    *about_p = (struct model_about){0};
    if (s->job->resume != NULL) {
        TRY(train_run_open(s->job->runs_dir, s->job->resume, &s->run));
        TRY(train_run_lock(&s->run, 0));
        TRY(train_run_about(&s->run, about_p));
        TRY(describe_model(s, about_p->model));
        TRY(choose(s));
        TRY(load_resumed(s, about_p->digest));
    } else {
        if (s->job->run != NULL)
            TRY(train_run_check(s->job->runs_dir, s->job->run));
        TRY(nn_model_text(s->job->model, &text));
        TRY(describe_model(s, text));
        TRY(choose(s));
        TRY(initial_weights(s));
        s->saved_step = -1;
    }
out:
    base_free(text);
    return st;
}

static void announce(const struct train_session *s)
{
    const struct data_info *info = s->info;

    base_info("%s: %llu parameters, %.2f GFLOP a sample; %s: %u training%s samples of %dx%dx%d, "
              "%d classes",
              s->job->model, (unsigned long long)nn_graph_parameters(s->graph),
              nn_graph_flops(s->graph) / 1e9, s->job->data, info->count[DATA_TRAIN],
              info->count[DATA_VALIDATION] > 0 ? " (and validation)" : "", info->channels,
              info->height, info->width, info->classes);
    base_info("run %s, %d thread%s, %s kernels, about %.0f MB", s->run.path, s->threads,
              s->threads == 1 ? "" : "s", nn_simd()->name,
              (double)nn_graph_memory(s->graph, s->piece, s->state.optimiser->slots) / 1e6);
}

static base_status make_state(struct train_session *s)
{
    base_status st = BASE_OK;

    TRY(base_tensor(nn_graph_stat_floats(s->graph), sizeof(float), "statistics",
                    &s->statistics_before));
    s->tracked_before = base_calloc(nn_graph_stats(s->graph), sizeof *s->tracked_before);
    plan_steps(s);
out:
    return st;
}

base_status train_session_found(struct train_session *s)
{
    base_status st = BASE_OK;
    struct model_about resumed = {0};

    s->batch = s->job->batch_per_worker > 0 ? s->job->batch_per_worker * s->team.exchange.size
                                            : s->job->batch;
    TRY(open_model(s, &resumed));
    TRY(make_state(s));
    TRY(check_unfinished(s));
    /* A resumed run computes with the kernels it began with. */
    TRY(train_session_tune(s, resumed.kernels != NULL ? resumed.kernels : s->job->kernels));
    s->whole = true;
out:
    model_about_fini(&resumed);
    return st;
}

base_status train_session_follow(struct train_session *s, const char *model, const char *kernels)
{
    base_status st = BASE_OK;

    TRY(describe_model(s, model));
    TRY(choose(s));
    TRY(make_state(s));
    s->kernels = base_strdup(kernels);
out:
    return st;
}

base_status train_session_open(const struct train_job *job, struct cluster_worker *worker,
                               struct train_session *s)
{
    base_status st = BASE_OK;
    int threads = worker != NULL ? cluster_worker_threads(worker) : (int)job->threads;

    *s = (struct train_session){.job = job, .started = base_now()};
    s->team.worker = worker;
    s->saved_step = -1;
    TRY(train_job_check(job));
    TRY(train_fault_find(train_team_id(&s->team), &s->fault));
    TRY(train_strategy_find(train_job_strategy(job, worker != NULL), &s->strategy, &s->options));
    s->threads = nn_threads_set(threads);
    TRY(open_data(s));
    TRY(train_session_enter(s));
    s->first_timed_step = s->state.position.step;
    if (s->last_step > s->state.position.step)
        TRY(train_pace_init(&s->pace, s->last_step - s->state.position.step));
    train_metrics_init(&s->test, s->info->classes);
    if (train_team_leads(&s->team))
        announce(s);
out:
    return st;
}

void train_session_unmake(struct train_session *s)
{
    train_record_free(s->record);
    nn_net_free(s->net);
    train_copies_close(&s->copies, &s->state);
    train_state_fini(&s->state);
    nn_graph_free(s->graph);
    base_free(s->kernels);
    base_free(s->statistics_before);
    base_free(s->tracked_before);
    base_free(s->accumulated);
    train_round_fini(&s->round);
    train_run_close(&s->run);
    s->record = NULL;
    s->net = NULL;
    s->graph = NULL;
    s->kernels = NULL;
    s->statistics_before = s->accumulated = NULL;
    s->tracked_before = NULL;
    s->whole = false;
}

void train_session_close(struct train_session *s)
{
    data_loader_free(s->loader);
    train_session_unmake(s);
    train_team_leave(&s->team);
    data_close(s->set);
    train_metrics_fini(&s->test);
    base_free(s->options);
    base_free(s->order);
    base_free(s->ranks);
    train_pace_fini(&s->pace);
}
