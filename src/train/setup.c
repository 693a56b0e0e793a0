/* SPDX-License-Identifier: MIT
 *
 * From a job to a session: task, strategy, state. Everything that can be refused is refused before
 * the run folder is made (lead.c). With several workers rank 0 describes the state alone; enter.c
 * hands the description to the others, begin.c fills it.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "nn/threads.h"
#include "train/session.h"

/* Sweeps are many and may be shorter than a checkpoint or a test takes. */
static void plan_sweeps(const struct train_job *job, int64_t sweeps, struct train_plan *plan)
{
    enum { LINES = 40, SAVES = 10 }; /* of a whole training, at most */

    const int64_t usual = (sweeps + LINES - 1) / LINES;

    plan->tell_every = job->log_every > 0 ? job->log_every : usual;
    if (job->eval_every < 0)
        plan->eval_every = usual;
    plan->judge_every = plan->eval_every > 0 ? plan->eval_every : usual;
    if (job->checkpoint_every == 0)
        plan->save_every = (sweeps + SAVES - 1) / SAVES;
}

static base_status plan_steps(struct train_session *s)
{
    const struct train_job *job = s->job;
    struct train_plan *plan = &s->plan;
    base_status st = nn_schedule_find(job->schedule, &plan->schedule);
    int64_t steps_per_epoch = (s->count[DATA_TRAIN] + plan->batch - 1) / plan->batch;

    const struct train_sweeps *sweeps = s->task->sweeps;
    int64_t all = sweeps != NULL ? sweeps->count(s) : job->epochs * steps_per_epoch;

    plan->last_step = s->closed ? 1 : job->steps >= 0 ? job->steps : all;
    plan->save_every = job->checkpoint_every;
    plan->eval_every = job->eval_every >= 0 ? job->eval_every : 1;
    plan->judge_every = plan->tell_every = 1;
    if (sweeps != NULL)
        plan_sweeps(job, all, plan);
    plan->schedule_setup = (struct nn_schedule_setup){
        .total = (uint64_t)plan->last_step,
        .warmup = (uint64_t)(job->warmup * (double)steps_per_epoch),
        .period = (uint64_t)(job->decay_every * (double)steps_per_epoch),
        .decay = job->decay,
        .final_factor = job->final_lr,
    };
    if (plan->schedule_setup.period == 0)
        plan->schedule_setup.period = 1;
    return st;
}

static bool same(const char *a, const char *b)
{
    return a != NULL && b != NULL && a[0] != '\0' && strcmp(a, b) == 0;
}

/* The data must be what the run was trained on. Files of a folder that was not moved may have been
 * repaired: the same names, other sizes. */
static base_status check_digest(const struct train_session *s, const struct model_about *resumed)
{
    if (same(resumed->digest, s->former_digest != NULL ? s->former_digest : s->digest))
        return BASE_OK;
    if (!same(resumed->data_path, s->data_path) || !same(resumed->data_names, s->data_names))
        return base_fail(BASE_ERR_DATA,
                         "%s is not the data that run %s was trained on (its digest "
                         "changed); start anew with --init %s",
                         s->job->data, s->run.name, s->run.name);
    base_warn("files of %s have other sizes than when run %s began; it goes on with them as they "
              "are",
              s->job->data, s->run.name);
    return BASE_OK;
}

/* A run goes on without the samples that it began without, and with all others. */
static base_status check_excluded(const struct train_session *s)
{
    const char *former = json_string_value(json_object_get(s->run.json, "excluded"));

    if (strcmp(former != NULL ? former : "", s->excluded) == 0)
        return BASE_OK;
    if (former == NULL)
        return base_fail(BASE_ERR_USAGE,
                         "run %s was trained on all samples; with --exclude start anew, with "
                         "--like %s",
                         s->run.name, s->run.name);
    return base_fail(BASE_ERR_DATA,
                     "%s does not list what run %s was trained without; say with --exclude where "
                     "the same index is now",
                     s->job->exclude, s->run.name);
}

/* The model that `text` is, and what the strategy keeps beside its weights. */
static base_status describe(struct train_session *s, const char *text)
{
    base_status st = s->task->describe(s, text);

    if (st == BASE_OK && s->strategy->extras != NULL)
        s->state.extras = s->strategy->extras(s->options);
    return st;
}

/* The newest checkpoint of the run that is resumed, or its beginning: the position. */
static base_status open_resumed(struct train_session *s, const struct model_about *resumed)
{
    base_status st = BASE_OK;

    TRY(check_digest(s, resumed));
    TRY(check_excluded(s));
    if (!store_has_checkpoint(s->run.checkpoints)) {
        base_info("run %s has no checkpoint yet: it starts from the beginning", s->run.name);
        TRY(describe(s, resumed->model));
        s->about_waits = s->former_digest != NULL;
        goto out;
    }
    TRY(store_checkpoint_open(s->run.checkpoints, false, &s->origin));
    TRY(describe(s, resumed->model));
    TRY(train_session_load_position(s));
    s->about_waits = train_session_is_grown(s);
    if (s->state.position.cursor > s->count[DATA_TRAIN])
        TRY(base_fail(BASE_ERR_DATA, "%s is past the last of the %u training samples",
                      s->origin.path, s->count[DATA_TRAIN]));
    s->saved_step = s->state.position.step;
    base_info("run %s goes on after step %lld", s->run.name, (long long)s->state.position.step);
out:
    return st;
}

/* A finished run has nothing to resume, and its results are not to be written over. Nor is a run
 * finished because it is resumed to a step that it has passed. */
static base_status check_unfinished(struct train_session *s)
{
    const struct train_position *p = &s->state.position;

    if (s->job->resume == NULL)
        return BASE_OK;
    if (strcmp(train_run_status(&s->run), "done") != 0) {
        if (p->step > s->plan.last_step)
            return base_fail(BASE_ERR_USAGE,
                             "run %s is past step %lld, its last one by this command: it has made "
                             "%lld; raise --epochs or --steps",
                             s->run.name, (long long)s->plan.last_step, (long long)p->step);
        return BASE_OK;
    }
    if (train_session_stale(s))
        return base_fail(BASE_ERR_USAGE,
                         "run %s is done: %lld epoch%s brought no better validation loss; to go on "
                         "raise --patience",
                         s->run.name, (long long)p->stale_epochs, base_plural(p->stale_epochs));
    if (s->closed)
        return base_fail(BASE_ERR_USAGE,
                         "run %s is done: %s is computed in one step, and there is no other to go "
                         "on with",
                         s->run.name, s->job->model);
    if (p->step >= s->plan.last_step && s->task->sweeps != NULL && s->job->steps < 0)
        return base_fail(BASE_ERR_USAGE, "run %s is done: %s has made its %lld sweeps", s->run.name,
                         s->job->model, (long long)p->step);
    if (p->step >= s->plan.last_step)
        return base_fail(BASE_ERR_USAGE,
                         "run %s is done after step %lld; to go on raise --epochs or --steps",
                         s->run.name, (long long)p->step);
    return BASE_OK;
}

/* In a later view the run of this name is the job's own, of workers that this one knows nothing of.
 */
static base_status check_name(const struct train_session *s)
{
    base_status st = train_run_check(s->job->runs_dir, s->job->run);

    if (st == BASE_OK || s->team.worker == NULL || s->team.view.number <= 1)
        return st;
    return base_fail(BASE_ERR_DATA, "%s", TRAIN_STATE_UNKNOWN);
}

struct train_holds *train_session_places(const struct train_session *s)
{
    int size = s->team.exchange.size;
    struct train_holds *places = base_calloc((size_t)size, sizeof *places);
    struct train_placing placing = {
        .options = s->options, .size = size, .shares = &s->team.shares, .graph = s->state.graph};

    train_state_sizes(&s->state, placing.floats);
    if (s->task->sweeps != NULL && s->task->sweeps->rotation != NULL)
        placing.stays = s->task->sweeps->rotation->stays(s);
    for (int rank = 0; rank < size; rank++)
        train_strategy_place(s->strategy, &placing, rank, &places[rank]);
    return places;
}

static base_status make_room(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_holds *places = train_session_places(s), *mine = &places[s->team.exchange.rank];

    TRY(train_state_make_room(&s->state, TRAIN_WEIGHTS, mine));
    TRY(train_state_make_room(&s->state, TRAIN_SLOTS, mine));
out:
    base_free(places);
    return st;
}

/* Batches are cut into as many pieces as the run began with, unless a person says otherwise. */
static void keep_pieces(struct train_session *s, const struct model_about *resumed)
{
    const char *text = json_string_value(json_object_get(resumed->settings, "strategy"));
    const struct train_strategy *former = NULL;
    void *options = NULL;

    if (s->strategy->stages != NULL && text != NULL &&
        train_strategy_find(text, &former, &options) == BASE_OK && former == s->strategy)
        s->strategy->stages->keep(s->options, options);
    base_free(options);
}

base_status train_session_create(struct train_session *s)
{
    const struct train_job *job = s->job;
    base_status st = BASE_OK;
    struct model_about resumed = {0};
    int workers = train_strategy_workers(s->strategy, s->options, s->team.exchange.size);

    s->plan.batch = s->task->sweeps != NULL     ? s->count[DATA_TRAIN]
                    : job->batch_per_worker > 0 ? job->batch_per_worker * workers
                                                : job->batch;
    s->saved_step = -1;
    if (job->resume != NULL) {
        TRY(train_run_open(job->runs_dir, job->resume, &s->run));
        TRY(train_run_lock(&s->run, 0));
        TRY(train_run_about(&s->run, &resumed));
        keep_pieces(s, &resumed);
        TRY(open_resumed(s, &resumed));
    } else {
        if (job->run != NULL)
            TRY(check_name(s));
        TRY(describe(s, NULL));
    }
    TRY(plan_steps(s));
    TRY(check_unfinished(s));
    TRY(make_room(s));
    TRY(s->task->start(s));
    /* A resumed run computes with the kernels it began with. */
    TRY(s->task->tune(s, resumed.kernels != NULL ? resumed.kernels : job->kernels));
out:
    model_about_fini(&resumed);
    return st;
}

base_status train_session_follow(struct train_session *s, const char *model, const char *kernels,
                                 const struct train_position *position)
{
    base_status st = BASE_OK;

    TRY(describe(s, model));
    s->state.position = *position; /* the plan may begin there */
    TRY(plan_steps(s));
    s->kernels = base_strdup(kernels);
out:
    return st;
}

void train_session_discard(struct train_session *s)
{
    s->task->discard(s);
    base_free(s->kernels);
    train_run_close(&s->run);
    store_checkpoint_close(&s->origin);
    s->kernels = NULL;
    s->whole = s->begun = false;
}

base_status train_session_open_task(struct train_session *s)
{
    uint64_t before, after, files;
    base_status st = BASE_OK;

    base_resident_memory(&before, &files);
    TRY(s->task->open(s));
    if (s->job->patience > 0 && s->count[DATA_VALIDATION] == 0)
        TRY(base_fail(BASE_ERR_USAGE, "--patience needs a validation part: add --validation 0.1"));
    base_resident_memory(&after, &files);
    s->before.program = (double)before;
    s->before.data = after > before ? (double)(after - before) : 0;
    s->before.files = (double)files;
out:
    return st;
}

enum { TOLD = 5 }; /* parts of the memory, the largest */

static void announce(const struct train_session *s)
{
    int locals = train_team_neighbours(&s->team);
    struct base_str parts = {0};

    s->task->announce(s);
    if (train_job_is_auto(s->job))
        base_info("strategy %s (auto): %s", s->strategy->name,
                  train_strategy_auto(s->task, s->job->model, s->team.worker != NULL).why);
    train_memory_text(&s->memory, locals, TOLD, &parts);
    if (parts.length > 0) /* a task may have no bytes to tell of */
        base_info("memory %sB a worker: %s",
                  base_scaled(train_memory_part(&s->memory, locals)).text, parts.text);
    base_str_fini(&parts);
}

base_status train_session_open(const struct train_job *job, struct cluster_worker *worker,
                               struct train_session *s)
{
    base_status st = BASE_OK;
    int threads = worker != NULL ? cluster_worker_threads(worker) : (int)job->threads;

    *s = (struct train_session){.job = job,
                                .excluded = "",
                                .saved_step = -1,
                                .wrote_step = -1,
                                .united_step = -1,
                                .back_from = -1,
                                .reached = -1,
                                .saved_samples_step = -1};
    s->team.worker = worker;
    train_journal_init(&s->journal, job);
    train_trace_init(&s->trace);
    train_clock_start(&s->clock); /* the loop starts it anew: setting up is not training */
    s->task = train_task_of(job->model);
    s->work = base_calloc(1, s->task->size);
    TRY(train_job_check(job));
    TRY(train_shares_plan_parse(job->shares, &s->shares_plan));
    TRY(train_slow_parse(job->on_slow, &s->slow.policy));
    s->watch = base_calloc(1, sizeof *s->watch);
    TRY(train_fault_find(train_team_id(&s->team), &s->fault));
    TRY(train_attackers_parse(job->attack, train_team_id(&s->team), &s->attackers));
    TRY(train_strategy_find(train_job_strategy(job, worker != NULL), &s->strategy, &s->options));
    TRY(train_strategy_trains(s->strategy, s->task));
    if (worker == NULL) { /* else host 0 did, before it started workers */
        TRY(train_strategy_aggregates(s->strategy, job->aggregate));
        TRY(train_strategy_attacked(s->strategy, job));
    }
    s->first_options = base_calloc(1, s->strategy->options_size);
    memcpy(s->first_options, s->options, s->strategy->options_size);
    s->strategy_state = base_calloc(1, s->strategy->state_size);
    s->threads = nn_threads_set(threads);
    TRY(train_session_open_task(s));
    s->test = base_calloc(s->task->score_count(s), sizeof *s->test);
    s->journal.grade = s->task->grade(s);
    TRY(train_session_enter(s));
    TRY(train_journal_plan(&s->journal, s->state.position.step, s->plan.last_step));
    if (train_team_leads(&s->team))
        announce(s);
out:
    return st;
}

void train_session_close(struct train_session *s)
{
    train_session_leave(s);
    if (s->whole && s->strategy->settle != NULL) /* as in train_session_save_alone */
        s->strategy->settle(s, (struct train_version){-1, -1});
    if (s->task != NULL && s->work != NULL) {
        train_session_discard(s);
        s->task->close(s);
    }
    base_free(s->work);
    base_free(s->options);
    if (s->strategy_state != NULL && s->strategy->fini != NULL)
        s->strategy->fini(s->strategy_state);
    base_free(s->strategy_state);
    base_free(s->first_options);
    train_shares_plan_fini(&s->shares_plan);
    base_free(s->watch);
    train_slow_fini(&s->slow);
    cluster_settings_fini(&s->settings);
    json_decref(s->figures);
    base_free(s->test);
    base_free(s->ranks);
    json_decref(s->result);
    train_attackers_fini(&s->attackers);
    train_journal_fini(&s->journal);
    train_trace_fini(&s->trace);
}
