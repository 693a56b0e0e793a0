/* SPDX-License-Identifier: MIT */
#include "train/defence.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "coll/kernels.h"
#include "train/memory.h"
#include "train/session.h"
#include "train/step.h"

bool train_defence_wanted(const struct train_job *job)
{
    return job->aggregate != NULL && strcmp(job->aggregate, TRAIN_AGGREGATOR) != 0;
}

/* Rules that need what no worker can be trusted with. */
static base_status check_rule(const char *text)
{
    base_status st = BASE_OK;
    struct train_aggregation a = {0};

    TRY(train_aggregation_find(text, &a));
    if (a.rule->judges || a.rule->trusts)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--aggregate %s needs a manager that judges updates: take --strategy "
                      "downpour, or another rule",
                      a.rule->name));
    if (a.rule->believes)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--aggregate %s goes by the loss that a worker tells of itself, which is no "
                      "defence: take another rule, or --strategy downpour",
                      a.rule->name));
out:
    train_aggregation_fini(&a);
    return st;
}

base_status train_defence_suits(const struct train_job *job, double momentum, enum coll_wire wire)
{
    base_status st = BASE_OK;
    struct train_slow_policy policy;
    const char *rule = job->aggregate;

    if (!train_defence_wanted(job)) {
        if (momentum > 0)
            TRY(base_fail(BASE_ERR_USAGE,
                          "momentum=%g is of the gradients that workers send to a "
                          "rule: add --aggregate auto, or leave it out",
                          momentum));
        goto out;
    }
    TRY(check_rule(rule));
    if (wire != COLL_FP32)
        TRY(base_fail(BASE_ERR_USAGE,
                      "wire=%s rounds sums of gradients, of which --aggregate %s makes none: leave "
                      "one out",
                      coll_wire_names[wire], rule));
    if (job->sync_bn)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--sync-bn sums what workers tell of their samples, where one can put in "
                      "anything: leave out --sync-bn or --aggregate %s",
                      rule));
    if (train_shares_follow_speed(job->shares))
        TRY(base_fail(BASE_ERR_USAGE,
                      "--shares %s goes by the times that workers tell of themselves, and with a "
                      "larger share a worker counts more: with --aggregate %s say --shares even",
                      job->shares, rule));
    TRY(train_slow_parse(job->on_slow, &policy));
    if (policy.action != TRAIN_SLOW_TELL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--on-slow %s goes by the times that workers tell of themselves: with "
                      "--aggregate %s say --on-slow tell",
                      job->on_slow, rule));
out:
    return st;
}

const char *const *train_defence_extras(double momentum)
{
    static const char *const names[] = {TRAIN_MOMENTUM, NULL};

    return momentum > 0 ? names : NULL;
}

void train_defence_memory(const struct train_memory_question *q, double momentum,
                          struct train_memory *m)
{
    const double weights = q->sizes->weights;

    m->of[TRAIN_MEMORY_COMMUNICATION].own +=
        train_robust_memory(weights / sizeof(float), q->seat.workers) +
        train_robust_memory(q->sizes->statistics / sizeof(float), q->seat.workers);
    if (momentum > 0) { /* and what it may become */
        m->of[TRAIN_MEMORY_SLOTS].own += weights;
        m->of[TRAIN_MEMORY_SPARE].own += weights;
    }
}

/* ---- a view ---- */

static float *mean_of(const struct train_defence *d)
{
    float **mean = train_state_extra(&d->session->state, TRAIN_MOMENTUM);

    return mean != NULL ? *mean : NULL;
}

/* The gradients that the momentum waits with are in the weights, if their step is done. */
static void settle_momentum(struct train_defence *d)
{
    d->momentum.counts = d->smoothed <= d->session->state.position.step;
    train_momentum_commit(&d->momentum, mean_of(d));
}

static base_status open_statistics(struct train_defence *d, struct train_robust_setup setup)
{
    base_status st = BASE_OK;
    struct train_session *s = d->session;

    setup.name = "aggregated statistics";
    setup.floats = nn_graph_stat_floats(s->state.graph);
    setup.offset = 0;
    if (setup.floats == 0)
        return BASE_OK;
    TRY(coll_space_open(s->team.exchange.coll, "statistics", setup.floats, &d->space));
    setup.space = d->space;
    TRY(train_robust_open(&d->statistics, &setup));
out:
    return st;
}

static base_status open_robust(struct train_defence *d)
{
    base_status st = BASE_OK;
    struct train_session *s = d->session;
    const struct train_exchange *x = &s->team.exchange;
    const struct train_robust_setup setup = {.team = &s->team,
                                             .aggregation = &d->aggregation,
                                             .attackers = &s->attackers,
                                             .name = "aggregates",
                                             .space = x->space,
                                             .offset = TRAIN_HEAD,
                                             .floats = x->floats - TRAIN_HEAD};

    TRY(train_robust_open(&d->gradients, &setup));
    TRY(open_statistics(d, setup));
    if (train_team_leads(&s->team)) {
        train_aggregation_say(&d->aggregation, x->size);
        if (x->one_host)
            base_info("--aggregate %s: all workers share the memory of this host; they are not "
                      "checked, because each can write into the others'",
                      d->aggregation.rule->name);
    }
out:
    return st;
}

base_status train_defence_open(struct train_defence *d, struct train_session *s, double momentum)
{
    base_status st = BASE_OK;

    if (train_team_leads(&s->team))
        train_attackers_say(&s->attackers, &s->team.view);
    if (!train_defence_wanted(s->job))
        return BASE_OK;
    if (s->closed)
        return base_fail(BASE_ERR_USAGE,
                         "%s is computed in one step, from sums over all samples: --aggregate %s "
                         "has no updates to choose from",
                         s->job->model, s->job->aggregate);
    d->session = s;
    TRY(train_aggregation_find(s->job->aggregate, &d->aggregation));
    d->aggregation.silent = !train_team_leads(&s->team);
    settle_momentum(d);
    TRY(train_momentum_open(&d->momentum, momentum, mean_of(d), s->state.floats));
    if (s->team.exchange.size > 1)
        TRY(open_robust(d));
out:
    return st;
}

void train_defence_close(struct train_defence *d)
{
    train_robust_close(&d->gradients);
    train_robust_close(&d->statistics);
    coll_space_close(d->space);
    d->space = NULL;
    train_aggregation_fini(&d->aggregation);
}

void train_defence_fini(struct train_defence *d)
{
    train_momentum_fini(&d->momentum);
}

/* ---- a step ---- */

static void count_samples(const struct train_session *s, uint32_t whole,
                          uint32_t samples[COMM_MAX_WORKERS])
{
    uint32_t first;

    for (int rank = 0; rank < s->team.exchange.size; rank++)
        data_share_of(train_shares_of(&s->team.shares, rank), whole, &first, &samples[rank]);
}

static void tell_suspects(const struct train_defence *d, int64_t step)
{
    struct base_str ids = {0};

    for (int i = 0; i < d->gradients.count; i++)
        if (d->gradients.row[i].suspect)
            base_str_add(&ids, "%s%" PRIu32, ids.length > 0 ? "," : "", d->gradients.row[i].worker);
    if (ids.length > 0)
        base_event(d->session->journal.events,
                   "{\"event\":\"suspects\",\"step\":%" PRId64 ",\"workers\":[%s]}", step,
                   ids.text);
    base_str_fini(&ids);
}

/* What one worker has found; it waits until the coordinator has decided. */
static base_status act_on_blame(const struct train_defence *d, const struct train_robust *r)
{
    if (r->blame.rank < 0)
        return BASE_OK;
    return train_team_accuse(&d->session->team, r->blame.rank, r->blame.why);
}

/* This worker's gradient becomes the mean of its samples, and then a running mean. */
static void make_ready(struct train_defence *d, struct train_exchange *x, uint32_t samples)
{
    float *gradients = x->mine + TRAIN_HEAD;

    settle_momentum(d);
    if (samples == 0)
        return;
    if (samples != x->whole)
        coll_scale(x->floats - TRAIN_HEAD, (float)x->whole / (float)samples, gradients);
    train_momentum_smooth(&d->momentum, mean_of(d), gradients);
    d->smoothed = x->step;
}

base_status train_defence_combine(struct train_defence *d, struct train_exchange *x)
{
    base_status st = BASE_OK;
    struct train_robust *r = &d->gradients;
    uint32_t samples[COMM_MAX_WORKERS];
    enum train_category was = train_clock_enter(x->clock, TRAIN_COMMUNICATE);

    count_samples(d->session, x->whole, samples);
    make_ready(d, x, samples[x->rank]);
    x->range_count = 1;
    x->ranges[0] = (struct train_range){0, x->floats, x->mine};
    if (x->size == 1)
        goto out;
    TRY(train_robust_run(r, x->step, samples, x->mine));
    TRY(act_on_blame(d, r));
    tell_suspects(d, x->step);
    train_head_judge(r->heads, samples, x->size, d->head);
    x->range_count = 2;
    x->ranges[0] = (struct train_range){0, TRAIN_HEAD, d->head};
    x->ranges[1] = (struct train_range){TRAIN_HEAD, x->floats - TRAIN_HEAD, r->result};
out:
    train_clock_enter(x->clock, was);
    return st;
}

base_status train_defence_unite(struct train_defence *d, struct train_session *s)
{
    base_status st = BASE_OK;
    const float head[TRAIN_HEAD] = {0};
    struct train_robust *r = &d->statistics;
    uint32_t samples[COMM_MAX_WORKERS];

    if (!train_defence_is_on(d))
        return s->task->unite(s);
    if (d->space == NULL)
        return BASE_OK;
    count_samples(s, train_session_whole(s, s->plan.batch), samples);
    memcpy(coll_space_mine(d->space), s->state.statistics, r->setup.floats * sizeof(float));
    TRY(train_robust_run(r, s->state.position.step, samples, head));
    TRY(act_on_blame(d, r));
    memcpy(s->state.statistics, r->result, r->setup.floats * sizeof(float));
out:
    return st;
}

void train_defence_saving(struct train_defence *d)
{
    if (train_defence_is_on(d))
        settle_momentum(d);
}
