/* SPDX-License-Identifier: MIT
 *
 * Local SGD (Stich 2019): every worker trains alone for k steps on its shares, then all average
 * their weights, each by its share of the samples: a round. `warmup` steps at the beginning are
 * averaged one by one (post-local SGD, Lin et al. 2020); with k=auto rounds grow as the learning
 * rate falls (the quadratic rule of Gu et al. 2024). With --shares speed each worker gets a block
 * of a round's samples in place of its share of every batch, and a slow one makes fewer steps of
 * the same size: smaller steps would cost it as much for the weights. With `outer-lr` the round's
 * mean change is a gradient for an outer Nesterov step (DiLoCo, Douillard et al. 2023). With `wire`
 * the changes since the last round travel, compressed, with error feedback (train/mean.h), in place
 * of weights. What is committed is the last round: a lost worker costs the steps since then, which
 * the others do again. Outer velocity and residuals are extras of the state, so they outlive views
 * and are saved.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/forecast.h"
#include "train/mean.h"
#include "train/memory.h"
#include "train/residual.h"
#include "train/snapshot.h"
#include "train/step.h"

struct options {
    int64_t k; /* 0: auto */
    int64_t base, warmup;
    double alpha, outer_lr, outer_momentum;
    const char *wire; /* NULL: weights are averaged as they are */
    bool slots;
};

struct local_sgd {
    struct train_snapshot round;  /* the state after the last round */
    struct train_outcome outcome; /* of this worker's shares since then */
    struct train_clock began;     /* the clock then */
    int64_t due;                  /* the step that ends the round */
    struct train_wiring wiring;
    struct train_mean mean;
    float *velocity;       /* of the outer step; NULL: there is none */
    float *residual;       /* of the wire; NULL: there is none */
    int64_t steps, rounds; /* that this worker has done */
};

static const int64_t MOST_STEPS = 1000000; /* of a round */
enum { ENOUGH = 3 }; /* steps of a round, or rounds, that tell how fast workers are */

/* ---- options ---- */

#define VELOCITY "strategy.outer_velocity"

static const char *const *local_sgd_extras(const void *options)
{
    static const char *const velocity[] = {VELOCITY, NULL}, *const residual[] = {TRAIN_RESIDUAL,
                                                                                 NULL};
    static const char *const both[] = {VELOCITY, TRAIN_RESIDUAL, NULL};
    const struct options *o = options;

    if (o->outer_lr > 0)
        return train_wire_is_lossy(o->wire) ? both : velocity;
    return train_wire_is_lossy(o->wire) ? residual : NULL;
}

static base_status local_sgd_check(const void *options)
{
    return train_wire_check(((const struct options *)options)->wire);
}

static void local_sgd_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct options *options = q->options;
    int extras = (options->outer_lr > 0) + train_wire_is_lossy(options->wire);
    struct train_wiring wiring = {0};

    m->of[TRAIN_MEMORY_SLOTS].own += extras * q->sizes->weights;
    m->of[TRAIN_MEMORY_SPARE].own +=
        (1 + q->sizes->slots + extras) * q->sizes->weights + q->sizes->statistics;
    if (options->wire != NULL && train_wire_find(options->wire, &wiring) == BASE_OK)
        m->of[TRAIN_MEMORY_COMMUNICATION].own += train_mean_memory(
            &wiring, (size_t)(q->sizes->weights / sizeof(float)), q->seat.workers);
    train_wiring_fini(&wiring);
}

static void local_sgd_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct options *options = q->options;
    double n = q->seat.workers, k = (double)(options->k > 0 ? options->k : options->base);
    double bytes = q->sizes->weights * (options->slots ? 1 + q->sizes->slots : 1);
    size_t floats = (size_t)(q->sizes->weights / sizeof(float));
    struct train_wiring wiring = {0};

    if (options->wire != NULL && train_wire_find(options->wire, &wiring) == BASE_OK)
        bytes = (double)train_wire_bound(&wiring, floats);
    train_wiring_fini(&wiring);
    cost->sent = 2 * (n - 1) / n * bytes / k;
    cost->moved = n > 1 ? (n + 1) * bytes / k : 0;
    cost->exact = n == 1;
}

/* ---- views ---- */

static base_status local_sgd_open(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct local_sgd *state = s->strategy_state;
    float **velocity = train_state_extra(&s->state, VELOCITY);
    float **residual = train_state_extra(&s->state, TRAIN_RESIDUAL);

    state->velocity = velocity != NULL ? *velocity : NULL;
    state->residual = residual != NULL ? *residual : NULL;
    if (options->wire == NULL)
        goto out;
    TRY(train_wire_find(options->wire, &state->wiring));
    TRY(train_mean_open(&state->mean, &s->team, &state->wiring, state->residual, s->state.floats));
out:
    return st;
}

static void local_sgd_close(struct train_session *s)
{
    struct local_sgd *state = s->strategy_state;

    train_snapshot_fini(&state->round);
    train_mean_close(&state->mean);
    train_wiring_fini(&state->wiring);
}

/* Rank 0 saves the mean of all residuals in place of its own, from where its gradients were. */
static base_status local_sgd_saving(struct train_session *s)
{
    base_status st = BASE_OK;
    struct local_sgd *state = s->strategy_state;
    float *mean = s->team.exchange.mine + TRAIN_HEAD;

    if (state->residual == NULL || s->team.exchange.size == 1)
        goto out;
    TRY(train_mean_of_residuals(&state->mean, mean));
    if (train_team_leads(&s->team))
        *train_state_extra(&s->state, TRAIN_RESIDUAL) = mean;
out:
    return st;
}

static void local_sgd_saved(struct train_session *s)
{
    struct local_sgd *state = s->strategy_state;

    if (state->residual != NULL)
        *train_state_extra(&s->state, TRAIN_RESIDUAL) = state->residual;
}

/* ---- rounds ---- */

static void local_sgd_outer_step(const struct train_session *s)
{
    const struct options *options = s->options;
    const struct local_sgd *state = s->strategy_state;
    const float *before = state->round.weights;
    float *velocity = state->velocity, *weights = s->state.weights;
    float lr = (float)options->outer_lr, momentum = (float)options->outer_momentum;

    for (size_t i = 0; i < s->state.floats; i++) {
        float change = before[i] - weights[i];

        velocity[i] = momentum * velocity[i] + change;
        weights[i] = before[i] - lr * (change + momentum * velocity[i]);
    }
}

/* In place of averaged weights: those of the last round and the mean change since then. */
static base_status local_sgd_average_changes(struct train_session *s)
{
    base_status st = BASE_OK;
    struct local_sgd *state = s->strategy_state;
    const float *before = state->round.weights;
    float *change = s->team.exchange.mine + TRAIN_HEAD; /* the gradients are used up */
    float *weights = s->state.weights;
    size_t floats = s->state.floats;

    if (!train_state_finite(&s->state))
        TRY(base_fail(BASE_ERR_DIVERGED,
                      "the weights are no longer finite; try a lower --lr or --clip 1"));
    for (size_t i = 0; i < floats; i++)
        change[i] = weights[i] - before[i];
    TRY(train_mean_run(&state->mean, change, (uint32_t)state->outcome.seen, &s->fault,
                       s->team.exchange.step));
    for (size_t i = 0; i < floats; i++)
        weights[i] = before[i] + change[i];
out:
    return st;
}

static base_status local_sgd_average(struct train_exchange *x, float share, float *of, size_t count)
{
    for (size_t i = 0; i < count; i++)
        of[i] *= share;
    return coll_all_reduce(x->coll, of, count, NULL);
}

/* One model of all copies; `share`: this worker's, of the round's samples. */
static base_status local_sgd_average_models(struct train_session *s, float share)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    const struct local_sgd *state = s->strategy_state;
    struct train_exchange *x = &s->team.exchange;
    size_t floats = s->state.floats;

    if (options->wire != NULL)
        TRY(local_sgd_average_changes(s));
    else
        TRY(local_sgd_average(x, share, s->state.weights, floats));
    for (int i = 0; options->slots && i < s->state.optimiser->slots; i++)
        TRY(local_sgd_average(x, share, s->state.slots[i], floats));
    TRY(local_sgd_average(x, share, s->state.statistics, s->state.stat_floats));
    if (state->velocity != NULL)
        local_sgd_outer_step(s);
out:
    return st;
}

/* Steps of a round at the learning rate of the step that begins it: (alpha / lr)², at least `base`.
 * Without an alpha it is `base` at --lr. While the learning rate rises it is `base`, too: a low
 * rate that comes before the high ones is no reason to drift apart. */
static int64_t local_sgd_period(const struct train_session *s)
{
    const struct options *options = s->options;
    int64_t step = s->state.position.step;
    double alpha = options->alpha > 0 ? options->alpha : s->job->lr * sqrt((double)options->base);
    double lr = train_step_lr(s, step);
    double steps = pow(alpha / lr, 2) * (1 + 1e-9); /* 8 and not 7.99… */

    if (train_step_lr(s, step + 1) > lr || steps < (double)options->base)
        return options->base;
    return steps < (double)MOST_STEPS ? (int64_t)steps : MOST_STEPS;
}

/* Steps of the round that begins. While the speeds that shares are to follow are unknown, rounds
 * are an eighth as long: all workers wait for the slowest one until then. */
static int64_t local_sgd_round_steps(const struct train_session *s)
{
    const struct options *options = s->options;
    int64_t step = s->state.position.step, steps;

    if (step < options->warmup)
        return 1;
    steps = options->k > 0 ? options->k - step % options->k : local_sgd_period(s);
    if (steps > ENOUGH && train_shares_unknown(s))
        steps = steps / 8 > ENOUGH ? steps / 8 : ENOUGH;
    return steps;
}

static base_status local_sgd_begin_round(struct train_session *s)
{
    struct local_sgd *state = s->strategy_state;

    state->outcome = (struct train_outcome){0};
    state->began = s->clock;
    state->due = s->state.position.step + local_sgd_round_steps(s);
    return train_snapshot_take(&state->round, &s->state);
}

/* All copies become one; the samples since the last round count for all workers. */
static base_status local_sgd_end_round(struct train_session *s)
{
    base_status st = BASE_OK;
    struct local_sgd *state = s->strategy_state;
    struct train_outcome all = state->outcome;
    struct train_effort effort;
    int64_t steps = s->state.position.step - state->round.position.step;

    train_head_fill(s, &all);
    TRY(train_exchange_head(&s->team.exchange));
    train_head_read(s, s->team.exchange.mine, &all);
    train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    effort = train_slow_effort(s, &state->began, (double)state->outcome.seen);
    TRY(local_sgd_average_models(s, (float)((double)state->outcome.seen / (double)all.seen)));
    TRY(train_shares_tell(s, effort, steps < ENOUGH ? ENOUGH : 1));
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    train_step_count(s, &all, state->outcome.seen);
    s->united_step = s->state.position.step;
    state->rounds++;
out:
    return st;
}

/* A step by this worker's own gradients, which come scaled for the whole batch. */
static base_status local_sgd_step_alone(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct local_sgd *state = s->strategy_state;
    struct train_exchange *x = &s->team.exchange;
    struct train_range all = {0, x->floats, x->mine};
    float scale;

    TRY(train_step_compute(s, step));
    train_fault_at(&s->fault, "combine", x->step);
    scale = step->batch.count > 0 ? (float)step->batch.whole / (float)step->batch.count : 0;
    for (size_t i = TRAIN_HEAD; i < x->floats; i++)
        x->mine[i] *= scale;
    train_fault_at(&s->fault, "update", x->step);
    TRY(train_step_judge(s, step));
    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    train_update_ranges(&step->update, &all, 1);
    train_trace_enter(&s->trace, TRAIN_DOING_COMPUTE);
    train_step_advance(s, step);
    state->steps++;
    state->outcome.loss_sum += step->outcome.loss_sum;
    state->outcome.correct += step->outcome.correct;
    state->outcome.seen += step->outcome.seen;
out:
    return st;
}

/* All steps that this worker makes in the round, over its block of the samples. They pass for the
 * round's steps, of which all but the last are told. */
static base_status local_sgd_steps_by_speed(struct train_session *s, struct train_step *step,
                                            int64_t end)
{
    base_status st = BASE_OK;
    struct train_position *p = &s->state.position;
    const struct train_position from = *p;
    int64_t left = s->count[DATA_TRAIN] - from.cursor, steps = end - from.step, local;
    uint32_t batch = train_session_whole(s, s->plan.batch);
    int64_t samples = steps * batch < left ? steps * batch : left;
    uint32_t most = data_share_most(train_strategy_share(s), batch), first, own;

    *step = (struct train_step){.began = base_now(), .before = s->clock};
    data_share_of(train_team_share(&s->team), (uint32_t)samples, &first, &own);
    local = (own + most - 1) / most;
    if (own > 0)
        TRY(s->task->take(s,
                          &(struct train_block){.epoch = from.epoch,
                                                .from = (size_t)from.cursor + first,
                                                .count = own,
                                                .batch = (uint32_t)((own + local - 1) / local)}));
    for (int64_t i = 0; i < local; i++) {
        int64_t reached = from.step + (i + 1) * steps / local, told = p->step;

        TRY(local_sgd_step_alone(s, step));
        for (p->step = told; p->step < reached;) {
            p->step++;
            if (p->step < end)
                train_step_tell(s, step);
        }
    }
    p->step = s->team.exchange.step = end; /* by which messages of the mean are told apart */
    p->cursor = from.cursor + samples;
out:
    return st;
}

static base_status local_sgd_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct local_sgd *state = s->strategy_state;
    const struct train_position *p = &s->state.position;
    struct train_step step = {0};
    bool by_speed = s->team.exchange.size > 1 && train_shares_follow_speed(s->job->shares);

    TRY(local_sgd_begin_round(s));
    while (p->step < goal && !train_session_halts(s)) {
        if (by_speed)
            TRY(local_sgd_steps_by_speed(s, &step, state->due < goal ? state->due : goal));
        else
            TRY(local_sgd_step_alone(s, &step));
        if (p->step == goal || p->step >= state->due) {
            TRY(local_sgd_end_round(s));
            if (p->step < goal)
                TRY(local_sgd_begin_round(s));
        }
        train_step_tell(s, &step);
    }
out:
    if (st != BASE_OK) {
        train_step_undo(s, &step, st);
        train_snapshot_restore(&state->round, &s->state);
    }
    return st;
}

static json_t *local_sgd_figures(const struct train_session *s)
{
    const struct local_sgd *state = s->strategy_state;

    return json_pack("{s:I, s:I}", "local_steps", (json_int_t)state->steps, "most_rounds",
                     (json_int_t)state->rounds);
}

#define AT(field) offsetof(struct options, field)

static const char *const automatic[] = {"auto", NULL};

/* clang-format off */
static const struct base_option table[] = {
    {.name = "k", .argument = "N", .kind = BASE_INT, .offset = AT(k), .max = 1e6, .names = automatic,
     .live = true, .help = "steps between averages; more as the learning rate falls"},
    {.name = "base", .argument = "N", .kind = BASE_INT, .offset = AT(base), .min = 1, .max = 1e6,
     .help = "k=auto: the fewest steps between averages"},
    {.name = "alpha", .argument = "X", .kind = BASE_REAL, .offset = AT(alpha), .max = 1e3,
     .help = "k=auto: (alpha / learning rate)^2 steps; 0: base steps at --lr"},
    {.name = "wire", .argument = "NAME[/O=V]", .kind = BASE_TEXT, .offset = AT(wire),
     .registry = train_wire_registry, .help = "format in which the changes of weights travel"},
    {.name = "warmup", .argument = "N", .kind = BASE_INT, .offset = AT(warmup), .max = 1e12,
     .help = "steps at the beginning that are averaged each"},
    {.name = "slots", .kind = BASE_FLAG, .offset = AT(slots),
     .help = "average the optimiser's state, too"},
    {.name = "outer-lr", .argument = "X", .kind = BASE_REAL, .offset = AT(outer_lr), .max = 10,
     .help = "outer Nesterov step by the mean change; 0: the mean itself"},
    {.name = "outer-momentum", .argument = "X", .kind = BASE_REAL, .offset = AT(outer_momentum),
     .max = 0.999, .help = "of the outer step"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_local_sgd = {
    .name = "local-sgd",
    .help = "every worker trains alone for k steps, then weights are averaged",
    .commit_unit = "round",
    .shares = TRAIN_SHARES_ROUNDS,
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.k = 8, .base = 8, .outer_momentum = 0.9},
    .examples =
        (const char *const[]){"k=1", "k=4,warmup=2,slots", "k=4,outer-lr=0.7", "k=4,wire=int8",
                              "k=auto,base=2,outer-lr=0.7,wire=topk/share=0.1", NULL},
    .check = local_sgd_check,
    .extras = local_sgd_extras,
    .saving = local_sgd_saving,
    .saved = local_sgd_saved,
    .memory = local_sgd_memory,
    .cost = local_sgd_cost,
    .figures = local_sgd_figures,
    .state_size = sizeof(struct local_sgd),
    .open = local_sgd_open,
    .close = local_sgd_close,
    .leg = local_sgd_leg,
};
