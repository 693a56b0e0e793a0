/* SPDX-License-Identifier: MIT */
#include "train/parallel.h"

#include "base/clock.h"
#include "train/step.h"

enum { LEAST = 3 }; /* steps to know before shares change, again */

/* The sum of all workers' gradients, and with it what they must agree on. */
static base_status combine(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    const float *head = x->mine;

    train_fault_at(&s->fault, "combine", x->step);
    train_head_fill(s, &step->outcome);
    x->whole = step->batch.whole;
    TRY(train_attackers_forge_own(&s->attackers, (uint64_t)s->job->seed, x->step,
                                  x->floats - TRAIN_HEAD, x->mine + TRAIN_HEAD));
    TRY(s->strategy->sum->combine(x));
    for (int i = 0; i < x->range_count; i++)
        if (x->ranges[i].offset == 0)
            head = x->ranges[i].sum;
    train_head_read(s, head, &step->outcome);
out:
    return st;
}

static base_status apply(struct train_session *s, struct train_step *step)
{
    const struct train_exchange *x = &s->team.exchange;

    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    if (s->strategy->sum->apply != NULL)
        return s->strategy->sum->apply(s, &step->update);
    train_update_ranges(&step->update, x->ranges, x->range_count);
    return BASE_OK;
}

static void commit(struct train_session *s, const struct train_step *step)
{
    train_step_advance(s, step);
    train_step_count(s, &step->outcome, step->batch.count);
    train_step_tell(s, step);
}

static base_status run_step(struct train_session *s, struct train_effort *effort_p)
{
    base_status st = BASE_OK;
    struct train_step step;

    TRY(train_step_compute(s, &step)); /* next batch, forward, backward */
    train_attackers_delay(
        &s->attackers, &(struct train_pause){base_now() - step.began, s->team.exchange.step, true});
    TRY(combine(s, &step));
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    TRY(train_step_judge(s, &step));
    TRY(apply(s, &step));
    *effort_p = train_slow_effort(s, &step.before, step.batch.count);
    commit(s, &step);
out:
    if (st != BASE_OK)
        train_step_undo(s, &step, st);
    return st;
}

base_status train_parallel_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    struct train_effort effort;

    while (s->state.position.step < goal && !train_session_halts(s)) {
        TRY(run_step(s, &effort));
        TRY(train_shares_tell(s, effort, LEAST));
    }
out:
    return st;
}
