/* SPDX-License-Identifier: MIT
 *
 * A worker of `ps` computes a block that it was given, and hands gradients over as they become
 * complete.
 */
#include <math.h>

#include "nn/simd/simd.h"
#include "train/settings.h"
#include "train/strategies/ps/ps.h"

/* What a worker pushes is clipped, not the sum: a server sees slices alone. Bounds of shares add up
 * to the bound of the batch. */
static void ps_clip(struct train_session *s, const struct data_batch *batch)
{
    float *gradients = s->team.exchange.mine + TRAIN_HEAD;
    double bound = s->job->clip * batch->count / fmax(1, batch->whole), norm;

    if (s->job->clip == 0)
        return;
    norm = sqrt(nn_simd()->square_sum(s->state.floats, gradients));
    for (size_t i = 0; norm > bound && i < s->state.floats; i++)
        gradients[i] = (float)(gradients[i] * (bound / norm));
}

static base_status ps_prepare(struct train_session *s)
{
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;
    const struct train_block block = {.epoch = s->state.position.epoch,
                                      .from = (size_t)a->block.from,
                                      .count = (size_t)a->block.count,
                                      .batch = (uint32_t)a->block.count};
    bool blocks = !a->shared, change = blocks != p->blocks;

    s->state.position.step = a->step;
    p->blocks = blocks;
    if (blocks)
        return s->task->take(s, &block);
    s->state.position.cursor = a->whole.from;
    return change ? s->task->take(s, NULL) : BASE_OK;
}

/* A push begins, with backward. For tests: what a worker that is wrong would push, with its n-th
 * push of the view. */
static void ps_begin_push(struct train_session *s)
{
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;

    p->computing = true;
    p->pushed = false;
    p->client.spoils = train_fault_hits(&s->fault, "rubbish-size", p->clock + 1);
    p->client.spoils_nan = train_fault_hits(&s->fault, "rubbish-nan", p->clock + 1);
    ps_client_begin_push(&p->client,
                         a->shared ? 1 : (double)a->block.count / (double)s->plan.batch);
}

void ps_ready(struct train_exchange *x, size_t offset, size_t count)
{
    struct ps *p = x->state;

    (void)count;
    if (p->client.overlaps)
        ps_client_ready(&p->client, offset - TRAIN_HEAD);
}

/* Outside a block all weights are there, and no engine is. */
base_status ps_await(struct train_session *s, size_t offset, size_t count)
{
    struct ps *p = s->strategy_state;

    return p->computing ? ps_client_await(&p->client, offset + count) : BASE_OK;
}

base_status ps_compute(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ps *p = s->strategy_state;
    const struct train_ps_body *a = &p->client.answer;
    struct train_step *step = &p->step;

    TRY(ps_prepare(s));
    ps_begin_push(s);
    TRY(train_step_compute(s, step));
    p->step_number = s->team.exchange.step;
    train_fault_stall(&s->fault, (uint64_t)p->clock);
    if (step->batch.count != a->block.count)
        TRY(base_fail(BASE_ERR_INTERNAL, "%u samples of a block of %lld", step->batch.count,
                      (long long)a->block.count));
    ps_clip(s, &step->batch);
    p->outline = (struct train_outline){.rank = s->team.exchange.rank,
                                        .shared = a->shared,
                                        .clock = p->clock++,
                                        .read = p->client.read,
                                        .block = a->block,
                                        .loss_sum = step->outcome.loss_sum,
                                        .correct = step->outcome.correct,
                                        .seen = step->outcome.seen,
                                        .stop = train_team_stopping(&s->team),
                                        .renew = train_team_outdated(&s->team),
                                        .news = train_settings_are_news(s)};
    if (train_fault_hits(&s->fault, "rubbish-block", p->clock))
        p->outline.block.from++;
out:
    return st;
}
