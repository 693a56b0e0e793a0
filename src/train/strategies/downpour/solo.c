/* SPDX-License-Identifier: MIT */
#include "train/strategies/downpour/solo.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/mem.h"

/* ---- life ---- */

base_status downpour_solo_open(struct downpour_solo *solo, const struct train_session *s,
                               bool pushes)
{
    base_status st = BASE_OK;
    uint32_t samples = s->own_samples;

    solo->order = base_calloc(samples, sizeof *solo->order);
    solo->ids = base_calloc(samples, sizeof *solo->ids);
    solo->classes = base_calloc(samples, sizeof *solo->classes);
    if (pushes)
        TRY(base_tensor(downpour_solo_floats(s), sizeof(float), "the pushed weights",
                        &solo->pushed));
out:
    return st;
}

void downpour_solo_close(struct downpour_solo *solo)
{
    base_free(solo->order);
    base_free(solo->ids);
    base_free(solo->classes);
    base_free(solo->pushed);
    train_snapshot_fini(&solo->base);
    solo->pushed = NULL;
    solo->order = solo->ids = NULL;
    solo->classes = NULL;
}

void downpour_solo_fini(struct downpour_solo *solo)
{
    downpour_solo_close(solo);
    base_free(solo->own.values);
}

size_t downpour_solo_floats(const struct train_session *s)
{
    return s->state.floats + nn_graph_stat_floats(s->state.graph);
}

/* ---- a round ---- */

uint32_t downpour_solo_samples(const struct train_session *s, const struct downpour_round *r)
{
    int64_t left = s->count[DATA_TRAIN] - r->cursor, most = (r->goal - r->step) * s->plan.batch;

    return (uint32_t)(left < most ? left : most);
}

base_status downpour_solo_begin(struct downpour_solo *solo, const struct train_session *s,
                                int64_t goal)
{
    base_status st = BASE_OK;
    const struct train_position *p = &s->state.position;

    TRY(train_snapshot_take(&solo->base, &s->state));
    solo->round = (struct downpour_round){
        .epoch = p->epoch,
        .cursor = p->cursor,
        .step = p->step,
        .goal = goal,
        .checksum = base_crc32c(0, s->state.weights, s->state.floats * sizeof(float))};
out:
    return st;
}

/* Of any round; the order is left in `order` and `classes`. Of data that each worker has for itself
 * there is one block, as much of its own order as the round has of the job's. */
static struct train_division divide(const struct downpour_solo *solo, struct train_session *s,
                                    const struct downpour_round *r)
{
    int32_t classes = s->task->order(s, r->epoch, solo->order, solo->classes);
    bool local = solo->split == DOWNPOUR_SPLIT_LOCAL;
    uint64_t own = s->own_samples, all = s->count[DATA_TRAIN]; /* equal, but for `local` */
    uint64_t end = (uint64_t)r->cursor + downpour_solo_samples(s, r);
    uint32_t from = (uint32_t)((uint64_t)r->cursor * own / all), to = (uint32_t)(end * own / all);

    return (struct train_division){.split = solo->split,
                                   .blocks = local ? 1 : r->blocks,
                                   .samples = to - from,
                                   .order = solo->order + from,
                                   .classes = solo->classes + from,
                                   .class_count = classes,
                                   .alpha = solo->alpha,
                                   .seed = (uint64_t)s->job->seed};
}

base_status downpour_solo_divide(struct downpour_solo *solo, struct train_session *s, bool computes)
{
    base_status st = BASE_OK;
    uint32_t own;

    solo->division = divide(solo, s, &solo->round);
    own = computes ? solo->division.samples : 0;
    if (solo->split == DOWNPOUR_SPLIT_LOCAL)
        TRY(train_team_gather(&s->team, &own, sizeof own, solo->counts));
    else
        downpour_blocks_count(&solo->division, solo->counts);
    if (!downpour_round_same(&solo->own.round, &solo->round) && !solo->own.late)
        solo->own.valid = false;
out:
    return st;
}

/* ---- changes since the round's beginning ---- */

static void subtract(size_t count, const float *x, const float *from, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] - from[i];
}

base_status downpour_solo_measure(struct downpour_solo *solo, const struct train_session *s)
{
    base_status st = BASE_OK;
    size_t floats = s->state.floats;
    const float *weights = solo->base.weights, *statistics = solo->base.statistics;

    if (solo->own.values == NULL)
        TRY(base_tensor(downpour_solo_floats(s), sizeof(float), "this worker's result",
                        &solo->own.values));
    if (solo->pushed != NULL) {
        weights = solo->pushed;
        statistics = solo->pushed + floats;
    }
    subtract(floats, s->state.weights, weights, solo->own.values);
    subtract(nn_graph_stat_floats(s->state.graph), s->state.statistics, statistics,
             solo->own.values + floats);
out:
    return st;
}

static void fetch_part(size_t count, const float *fetched, float *pushed, float *x)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = fetched[i] + (x[i] - pushed[i]);
        pushed[i] = fetched[i];
    }
}

void downpour_solo_fetch(struct downpour_solo *solo, struct train_session *s, const float *fetched)
{
    size_t floats = s->state.floats;

    fetch_part(floats, fetched, solo->pushed, s->state.weights);
    fetch_part(nn_graph_stat_floats(s->state.graph), fetched + floats, solo->pushed + floats,
               s->state.statistics);
}

static void add(size_t count, const float *base, const float *change, float *y)
{
    if (change == NULL)
        memcpy(y, base, count * sizeof *y);
    for (size_t i = 0; change != NULL && i < count; i++)
        y[i] = base[i] + change[i];
}

void downpour_solo_rebase(const struct downpour_solo *solo, struct train_session *s,
                          const float *values)
{
    size_t floats = s->state.floats;

    add(floats, solo->base.weights, values, s->state.weights);
    add(nn_graph_stat_floats(s->state.graph), solo->base.statistics,
        values != NULL ? values + floats : NULL, s->state.statistics);
    memcpy(s->state.tracked, solo->base.tracked,
           nn_graph_stats(s->state.graph) * sizeof *s->state.tracked);
    s->state.position = solo->base.position;
}

/* ---- a block ---- */

void downpour_solo_accept(struct downpour_solo *solo, uint32_t block)
{
    struct train_own *own = &solo->own;

    if (own->valid && !own->complete && !own->late && own->block == block)
        return;
    own->valid = own->complete = own->late = own->counts = false;
    own->round = solo->round;
    own->block = block;
    own->samples = solo->counts[block];
    own->done = 0;
    own->total = 0;
    for (uint32_t b = 0; b < solo->round.blocks; b++)
        own->total += solo->counts[b];
    own->outcome = (struct train_outcome){0};
}

/* The block's share of a batch: with it, it makes as many steps as its round has. */
static double nominal_batch(const struct train_session *s, const struct train_own *own)
{
    return (double)s->plan.batch * own->samples / (double)own->total;
}

/* What is computed at once: no more than this worker has memory for. */
static uint32_t real_batch(const struct train_session *s, const struct train_own *own)
{
    uint32_t whole = train_session_whole(s, s->plan.batch);
    uint32_t most = data_share_most(train_team_share(&s->team), whole);
    double nominal = ceil(nominal_batch(s, own) - 1e-9);

    return nominal < most ? (uint32_t)nominal : most;
}

/* The task gets own's block from where it was left. */
static base_status take_up(struct downpour_solo *solo, struct train_session *s)
{
    const struct train_own *own = &solo->own;
    struct train_division division = own->late ? divide(solo, s, &own->round) : solo->division;
    struct train_block block = {.epoch = own->round.epoch,
                                .ids = solo->ids + own->done,
                                .count = own->samples - own->done,
                                .batch = real_batch(s, own)};

    /* Of a worker's own data there is one block, whichever number it has. */
    downpour_blocks_ids(&division, division.blocks > own->block ? own->block : 0, solo->ids);
    if (own->late)
        solo->division = divide(solo, s, &solo->round);
    return s->task->take(s, &block);
}

/* A step by this worker's own gradients. */
static base_status step_alone(struct downpour_solo *solo, struct train_session *s,
                              struct train_step *step)
{
    base_status st = BASE_OK;
    struct train_own *own = &solo->own;
    struct train_exchange *x = &s->team.exchange;
    struct train_range all = {0, x->floats, x->mine};
    const struct downpour_round *r = &solo->round;
    float scale;

    TRY(train_step_compute(s, step));
    if (step->batch.count == 0)
        TRY(base_fail(BASE_ERR_INTERNAL, "block %u ends after %u of %u samples", own->block,
                      own->done, own->samples));
    train_fault_at(&s->fault, "combine", x->step);
    scale = (float)(step->batch.count / nominal_batch(s, own));
    for (size_t i = TRAIN_HEAD; i < x->floats && scale != 1; i++)
        x->mine[i] *= scale;
    train_fault_at(&s->fault, "update", x->step);
    TRY(train_step_judge(s, step));
    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    train_update_ranges(&step->update, &all, 1);
    train_trace_enter(&s->trace, TRAIN_DOING_COMPUTE);
    own->done += step->batch.count;
    own->outcome.loss_sum += step->outcome.loss_sum;
    own->outcome.correct += step->outcome.correct;
    own->outcome.seen += step->outcome.seen;
    s->tested = false;
    s->state.position.step = r->step + (r->goal - r->step) * own->done / own->samples;
out:
    return st;
}

/* The journal's entry, with as many samples as all workers have computed meanwhile if they are as
 * fast as this one. */
static void tell(struct train_session *s, const struct train_own *own, struct train_step *step)
{
    step->batch.whole = (uint32_t)(step->batch.count * own->total / own->samples);
    train_step_tell(s, step);
}

base_status downpour_solo_train(struct downpour_solo *solo, struct train_session *s,
                                downpour_solo_look *look, void *context, bool *over_p)
{
    base_status st = BASE_OK;
    struct train_own *own = &solo->own;
    struct train_step step = {0};

    *over_p = false;
    if (solo->pushed == NULL)
        downpour_solo_rebase(solo, s, own->done > 0 ? own->values : NULL);
    TRY(take_up(solo, s));
    while (own->done < own->samples && !*over_p) {
        bool first = own->done == 0;

        TRY(step_alone(solo, s, &step));
        tell(s, own, &step);
        train_attackers_delay(&s->attackers, &(struct train_pause){base_now() - step.began,
                                                                   s->team.exchange.step, first});
        TRY(look(s, context, over_p));
    }
    own->complete = own->done == own->samples;
    TRY(downpour_solo_measure(solo, s));
    own->valid = true;
out:
    if (st != BASE_OK)
        train_step_undo(s, &step, st);
    if (st == BASE_ERR_PEER_LOST && own->done > 0)
        own->valid = downpour_solo_measure(solo, s) == BASE_OK;
    base_ignore(s->task->take(s, NULL)); /* `next` serves shares again */
    return st;
}
