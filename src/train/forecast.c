/* SPDX-License-Identifier: MIT */
#include "train/forecast.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "train/defence.h"
#include "train/session.h"

/* Of forward and backward together, what backward takes, during which gradients can travel. */
static const double BACKWARD = 2.0 / 3;

static const double MARGIN = 0.15; /* forecasts err */

base_status train_forecast_open(const struct train_job *job, struct train_session *s)
{
    base_status st = BASE_OK;

    *s = (struct train_session){.job = job, .task = train_task_of(job->model), .saved_step = -1};
    s->work = base_calloc(1, s->task->size);
    if (s->task->survey == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "%s is a rating model; plans are for networks", job->model));
    TRY(train_job_check(job));
    TRY(train_strategy_find("single", &s->strategy, &s->options));
    TRY(train_session_open_task(s));
    s->plan.batch = job->batch;
    TRY(s->task->survey(s));
    if (s->closed)
        TRY(base_fail(BASE_ERR_USAGE, "%s is computed in one step: there is nothing to plan",
                      job->model));
out:
    return st;
}

base_status train_forecast_model(struct train_session *s, struct train_job *job, const char *model)
{
    job->model = model;
    s->job = job;
    s->task->discard(s);
    return s->task->survey(s);
}

/* ---- memory ---- */

static struct train_memory_question ask(const struct train_session *s,
                                        const struct train_setting *setting, const void *options,
                                        const struct train_sizes *sizes)
{
    bool one_host = setting->link == 0;

    return (struct train_memory_question){
        .sizes = sizes,
        .options = options,
        .seat = {.workers = setting->workers,
                 .locals = one_host ? setting->workers : 1,
                 .shares = one_host && setting->workers > 1},
        .clips = s->job->clip > 0,
        .defends = train_defence_wanted(s->job),
        .accumulates = s->job->accumulate > 1,
        .saves = s->job->checkpoint,
        .program = s->before.program,
        .data = s->before.data,
        .files = s->before.files,
        .steps = ceil((double)s->count[DATA_TRAIN] / (double)s->plan.batch),
    };
}

static void foresee_memory(const struct train_strategy *strategy, struct train_memory_question q,
                           const struct train_setting *setting, struct train_forecast *f)
{
    double host = 0;

    f->worker = 0;
    for (q.seat.rank = 0; q.seat.rank < q.seat.workers; q.seat.rank++) {
        struct train_memory memory;
        struct train_bytes sum;
        double part;

        train_memory_count(strategy, &q, &memory);
        sum = train_memory_sum(&memory);
        part = train_memory_part(&memory, q.seat.locals);
        host = q.seat.locals > 1 ? host + part : fmax(host, part);
        if (part <= f->worker)
            continue;
        f->worker = part;
        f->resident = sum.own + sum.shared + memory.files;
        f->memory = memory;
    }
    f->fits = host <= (double)base_memory_limit() &&
              (setting->budget == 0 || f->worker <= setting->budget);
}

/* Stages choose what their options leave open: more pieces where few do not fit. */
static void foresee_sizes(const struct train_session *s, const struct train_setting *setting,
                          const struct train_strategy *strategy, void *options,
                          struct train_sizes *sizes, struct train_forecast *f)
{
    const struct train_stages *stages = strategy->stages;
    int64_t batch = s->plan.batch, least = 1;
    bool more;

    do {
        train_memory_sizes(s, strategy, options, setting->workers, batch, s->job->accumulate,
                           sizes);
        more = stages != NULL && sizes->graph != NULL &&
               stages->choose(options, sizes->graph, setting->workers,
                              train_session_whole(s, batch), least);
        if (more) {
            train_memory_sizes(s, strategy, options, setting->workers, batch, s->job->accumulate,
                               sizes);
            least = 2 * stages->pieces(options);
        }
        foresee_memory(strategy, ask(s, setting, options, sizes), setting, f);
    } while (more && !f->fits);
}

/* ---- time ---- */

static base_status foresee_time(const struct train_setting *setting, int samples, int64_t pieces,
                                struct train_forecast *f)
{
    base_status st = BASE_OK;
    const struct train_cost *c = &f->cost;
    struct train_profile profile;
    double compute, update, talk, hidden;

    TRY(setting->profile(setting->context, samples, &profile));
    compute = c->work * (double)pieces * profile.compute;
    update = c->updates * profile.update;
    talk = setting->link > 0 ? c->sent / setting->link : c->moved / setting->memory_rate;
    /* On one host a thread that moves bytes takes the cores from those that compute. */
    hidden = setting->link > 0 ? fmin(c->hidden * talk, BACKWARD * compute) : 0;
    f->seconds = compute / (1 - c->bubble) + update + talk - hidden;
    f->idle = 1 - (compute + update) / f->seconds;
out:
    return st;
}

/* ---- strategies ---- */

/* Is it for such a job? */
static bool serves(const struct train_session *s, const struct train_setting *setting,
                   const struct train_strategy *strategy, const void *options)
{
    return train_strategy_serves(strategy, setting->workers) == BASE_OK &&
           train_strategy_trains(strategy, s->task) == BASE_OK &&
           train_strategy_suits(strategy, options, options, s->job) == BASE_OK;
}

static base_status foresee(struct train_session *s, const struct train_setting *setting,
                           const char *text, bool timed, struct train_forecasts *list)
{
    base_status st = BASE_OK;
    const struct train_strategy *former = s->strategy, *strategy = NULL;
    const struct train_stages *stages;
    struct train_forecast *f = &list->at[list->count];
    struct train_memory_question q;
    struct train_sizes sizes;
    void *options = NULL;

    TRY(train_strategy_find(text, &strategy, &options));
    if (!serves(s, setting, strategy, options))
        goto out;
    stages = strategy->stages;
    s->strategy = strategy; /* the task's sizes depend on it */
    *f = (struct train_forecast){.text = base_strdup(text),
                                 .cost = {.work = 1, .updates = 1, .exact = true}};
    list->count++;
    foresee_sizes(s, setting, strategy, options, &sizes, f);
    q = ask(s, setting, options, &sizes);
    strategy->cost(&q, &f->cost);
    if (timed && isfinite(f->worker))
        TRY(foresee_time(setting, sizes.samples,
                         stages != NULL ? stages->pieces(options) : s->job->accumulate, f));
out:
    s->strategy = former;
    base_free(options);
    return st;
}

bool train_forecast_fits(struct train_session *s, const struct train_setting *setting,
                         const char *text)
{
    struct train_forecast one = {0};
    struct train_forecasts list = {.at = &one};
    bool fits = foresee(s, setting, text, false, &list) == BASE_OK && one.fits;

    base_free(one.text);
    return fits;
}

double train_forecast_judged(const struct train_forecast *f)
{
    return f->seconds * (f->usual ? 1 - MARGIN : 1);
}

/* A strategy that heals comes before one that does not, then the faster one. */
static bool is_better(const struct train_forecast *f, const struct train_forecast *best)
{
    if (best == NULL || f->cost.frail != best->cost.frail)
        return best == NULL || best->cost.frail;
    return train_forecast_judged(f) < train_forecast_judged(best);
}

const char *train_forecast_price(const struct train_forecast *f)
{
    return f->cost.frail ? "; with one copy of its state, a lost worker costs what came after the "
                           "newest checkpoint"
                         : "";
}

static void choose(struct train_forecasts *list, const char *usual)
{
    for (size_t i = 0; i < list->count; i++) {
        struct train_forecast *f = &list->at[i];

        f->usual = strcmp(f->text, usual) == 0;
        if (f->fits && f->cost.exact && is_better(f, list->choice))
            list->choice = f;
    }
}

base_status train_forecast_make(struct train_session *s, const struct train_setting *setting,
                                bool timed, struct train_forecasts *list)
{
    static const char *const plain[] = {"", NULL};
    enum { MOST_PLANS = 8 };
    base_status st = BASE_OK;

    *list = (struct train_forecasts){
        .at = base_calloc(train_strategy_count * MOST_PLANS, sizeof *list->at)};
    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *strategy = train_strategy_registry[i];
        const char *const *plans = strategy->plans != NULL ? strategy->plans : plain;

        for (int k = 0; strategy->cost != NULL && k < MOST_PLANS && plans[k] != NULL; k++) {
            char *text =
                base_format("%s%s%s", strategy->name, plans[k][0] != '\0' ? ":" : "", plans[k]);

            st = foresee(s, setting, text, timed, list);
            base_free(text);
            TRY(st);
        }
    }
    choose(list, train_strategy_auto(s->task, s->job->model, setting->workers > 1).strategy);
out:
    return st;
}

void train_forecasts_fini(struct train_forecasts *list)
{
    for (size_t i = 0; i < list->count; i++)
        base_free(list->at[i].text);
    base_free(list->at);
    *list = (struct train_forecasts){0};
}
