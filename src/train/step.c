/* SPDX-License-Identifier: MIT */
#include "train/step.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "train/figures.h"
#include "train/settings.h"

/* A loss this many times the first one is divergence even while it is a number. */
static const double DIVERGED = 1e4;

enum head { HEAD_LOSS, HEAD_CORRECT, HEAD_SEEN, HEAD_STOP, HEAD_RENEW, HEAD_NEWS };

double train_step_lr(const struct train_session *s, int64_t step)
{
    return s->job->lr *
           nn_schedule_factor(s->plan.schedule, &s->plan.schedule_setup, (uint64_t)step);
}

static struct train_update describe_update(const struct train_session *s)
{
    const struct train_job *job = s->job;
    int64_t step = s->state.position.step;
    struct train_update update = {
        .weights = s->state.weights,
        .optimiser = s->state.optimiser,
        .clip = job->clip,
        .hyper =
            {
                .lr = train_step_lr(s, step),
                .momentum = job->momentum,
                .nesterov = job->nesterov,
                .weight_decay = job->weight_decay,
                .beta1 = job->beta1,
                .beta2 = job->beta2,
                .epsilon = job->epsilon,
                .gradient_scale = 1,
                .step = (uint64_t)step + 1,
                .lazy = s->lazy,
            },
    };

    memcpy(update.slots, s->state.slots, sizeof update.slots);
    return update;
}

void train_step_begin(struct train_session *s, struct train_step *step)
{
    s->team.exchange.step = s->state.position.step + 1;
    *step =
        (struct train_step){.began = base_now(), .before = s->clock, .update = describe_update(s)};
    train_trace_begin(&s->trace, s->team.exchange.step);
}

base_status train_step_compute(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &s->team.exchange;

    train_step_begin(s, step);
    train_clock_enter(&s->clock, TRAIN_DATA);
    TRY(s->task->next(s, &step->batch));
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    train_fault_at(&s->fault, "data", x->step);
    train_journal_watch(&s->journal, x->step);
    TRY(s->task->compute(s, &step->batch, &step->outcome));
    train_journal_unwatch(&s->journal); /* evaluations are not recorded */
out:
    return st;
}

bool train_loss_diverged(struct train_session *s, double loss)
{
    if (s->first_loss == 0)
        s->first_loss = fmax(1, loss);
    return !isfinite(loss) || loss > DIVERGED * s->first_loss;
}

base_status train_step_judge(struct train_session *s, const struct train_step *step)
{
    double loss;
    int64_t number = s->state.position.step + (step->ended > 0 ? 0 : 1);
    char saved[96] = ", before the first checkpoint";

    if (step->outcome.seen == 0)
        return BASE_OK;
    loss = step->outcome.loss_sum / (double)step->outcome.seen;
    if (!train_loss_diverged(s, loss))
        return BASE_OK;
    if (s->saved_step >= 0)
        snprintf(saved, sizeof saved, "; the checkpoint of step %" PRId64 " is kept",
                 s->saved_step);
    return base_fail(BASE_ERR_DIVERGED,
                     "the loss is %g at step %" PRId64 " (epoch %" PRId64
                     ")%s; try a lower --lr or --clip 1",
                     loss, number, s->state.position.epoch + 1, saved);
}

void train_step_advance(struct train_session *s, const struct train_step *step)
{
    s->tested = false; /* the test's figures were of the former weights */
    s->state.position.step++;
    s->state.position.cursor += step->batch.whole;
}

void train_step_count(struct train_session *s, const struct train_outcome *outcome,
                      int64_t own_samples)
{
    s->state.position.loss_sum += outcome->loss_sum;
    s->state.position.correct += outcome->correct;
    s->state.position.seen += outcome->seen;
    s->samples += own_samples;
}

void train_step_end(const struct train_session *s, struct train_step *step)
{
    step->ended = base_now();
    step->after = s->clock;
}

void train_step_tell(struct train_session *s, const struct train_step *step)
{
    const struct train_position *p = &s->state.position;
    const struct train_clock *after = step->ended > 0 ? &step->after : &s->clock;
    struct train_entry entry = {
        .outcome = &step->outcome,
        .samples = step->batch.whole,
        .lr = step->update.hyper.lr,
        .data = train_clock_since(after, &step->before, TRAIN_DATA),
        .communicate = train_clock_since(after, &step->before, TRAIN_COMMUNICATE),
        .wait = train_clock_since(after, &step->before, TRAIN_WAIT),
        .overlapped = after->overlapped - step->before.overlapped,
        .seconds = (step->ended > 0 ? step->ended : base_now()) - step->began,
    };

    train_journal_step(&s->journal, p, &entry);
    if (s->team.worker != NULL)
        cluster_worker_step(s->team.worker, p->step);
    train_figures_tell(s, step->began);
}

void train_step_undo(struct train_session *s, const struct train_step *step, base_status st)
{
    if (st == BASE_ERR_PEER_LOST)
        train_clock_lost(&s->clock, &step->before);
    else
        train_clock_enter(&s->clock, TRAIN_COMPUTE);
    train_trace_drop(&s->trace);
    s->task->undo(s);
}

void train_head_fill(struct train_session *s, const struct train_outcome *outcome)
{
    float *head = s->team.exchange.mine;

    memset(head, 0, TRAIN_HEAD * sizeof *head);
    head[HEAD_LOSS] = (float)outcome->loss_sum;
    head[HEAD_CORRECT] = (float)outcome->correct;
    head[HEAD_SEEN] = (float)outcome->seen;
    head[HEAD_STOP] = train_team_stopping(&s->team);
    head[HEAD_RENEW] = train_team_outdated(&s->team);
    head[HEAD_NEWS] = train_settings_are_news(s);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Of what workers tell of their samples the median, for a sample. */
static float judged(const float *heads, const uint32_t *samples, int size, enum head which)
{
    float told[COMM_MAX_WORKERS];
    int count = 0;

    for (int rank = 0; rank < size; rank++) {
        const float sum = heads[rank * TRAIN_HEAD + (int)which];

        if (samples[rank] > 0)
            told[count++] = isfinite(sum) ? sum / (float)samples[rank] : INFINITY;
    }
    qsort(told, (size_t)count, sizeof *told, ascending);
    return count > 0 ? 0.5f * told[(count - 1) / 2] + 0.5f * told[count / 2] : 0;
}

void train_head_judge(const float *heads, const uint32_t *samples, int size, float *head_p)
{
    double whole = 0;

    memset(head_p, 0, TRAIN_HEAD * sizeof *head_p);
    for (int rank = 0; rank < size; rank++) {
        const float *head = heads + rank * TRAIN_HEAD;

        whole += samples[rank];
        for (int which = HEAD_STOP; which <= HEAD_NEWS; which++)
            head_p[which] = head[which] > 0 ? 1 : head_p[which];
    }
    head_p[HEAD_LOSS] = judged(heads, samples, size, HEAD_LOSS) * (float)whole;
    head_p[HEAD_CORRECT] = fminf(judged(heads, samples, size, HEAD_CORRECT), 1) * (float)whole;
    head_p[HEAD_SEEN] = (float)whole;
}

void train_head_read(struct train_session *s, const float *head, struct train_outcome *outcome)
{
    s->verdict.stop = head[HEAD_STOP] > 0;
    s->verdict.renew = head[HEAD_RENEW] > 0;
    s->verdict.news = head[HEAD_NEWS] > 0;
    if (s->team.exchange.size > 1) /* alone nothing is rounded to float */
        *outcome = (struct train_outcome){head[HEAD_LOSS], (int64_t)head[HEAD_CORRECT],
                                          (int64_t)head[HEAD_SEEN]};
}
