/* SPDX-License-Identifier: MIT
 *
 * ZeRO (Rajbhandari et al., SC 2020): what workers of a data-parallel training would all have is
 * divided between them. Every worker owns a slice of the flat buffers and updates it for all.
 *
 *   stage 1   the optimiser's state: gradients are summed as in allreduce, each worker updates its
 *             slice of the weights, and the slices are gathered
 *   stage 2   gradients, too: they are lent to the network group by group and reduced to the
 *             workers that keep their slices while backward goes on (train/lending.h)
 *   stage 3   weights, too: they are gathered group by group before each use, and freed after it
 *
 * The bits are those of allreduce.
 *
 * With replicas=R each slice is kept, and updated, by R workers: a lost worker then costs a step.
 * With one copy its part of the state is gone, and all go back to the newest checkpoint.
 *
 * Commit: no worker writes a weight before all have their sums, which they tell each other in a
 * meeting. One that loses another in that meeting cannot know whether the others went on. It keeps
 * its slice and its sums, and so has both versions; the next view decides (zero_settle). After the
 * update, until the weights are gathered, it has its own slices alone.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "nn/simd/simd.h"
#include "train/forecast.h"
#include "train/lending.h"
#include "train/step.h"

enum { MAX_SLICES = 2 }; /* slices of neighbours are one, but for those around the end */

struct options {
    int64_t stage, replicas;
};

struct zero_slice {
    size_t from, count;
    const float *sum; /* of the step under way, over all workers */
};

struct zero {
    struct zero_slice slices[MAX_SLICES]; /* what this worker updates */
    int count;
    struct train_lending lending; /* from stage 2 on */
    struct train_step step;       /* that waits for zero_settle; its sums are in … */
    float *sums;                  /* … this memory; NULL: none waits */
};

/* Stages differ in how the sums of a worker's slices are made and how it gets the weights. */
struct zero_stage {
    struct train_lends lends;
    base_status (*sum)(struct train_session *session, struct train_step *step);
    base_status (*provide)(struct train_session *session); /* after the update; or NULL */
};

/* ---- who has what ---- */

static void zero_add(struct zero_slice *slices, int *count, size_t from, size_t end)
{
    if (end > from)
        slices[(*count)++] = (struct zero_slice){.from = from, .count = end - from};
}

/* The slices of ranks rank - replicas + 1 … rank, around the end. */
static int zero_slices(size_t floats, int rank, int size, int64_t replicas,
                       struct zero_slice slices[MAX_SLICES])
{
    int count = 0, first = rank - (int)(replicas < size ? replicas : size) + 1;
    size_t from, length, end;

    coll_slice(floats, rank, size, &end, &length);
    end += length;
    coll_slice(floats, first < 0 ? first + size : first, size, &from, &length);
    if (first >= 0)
        zero_add(slices, &count, from, end);
    else if (from <= end) /* nothing is between them */
        zero_add(slices, &count, 0, floats);
    else {
        zero_add(slices, &count, 0, end);
        zero_add(slices, &count, from, floats);
    }
    return count;
}

static void zero_place(const struct train_placing *p, int rank, struct train_holds *wanted)
{
    const struct options *options = p->options;
    struct zero_slice slices[MAX_SLICES];
    int count = zero_slices(p->floats[TRAIN_SLOTS], rank, p->size, options->replicas, slices);

    if (options->stage < 3)
        wanted->at[wanted->count++] =
            (struct train_hold){.group = TRAIN_WEIGHTS, .count = p->floats[TRAIN_WEIGHTS]};
    for (enum train_group g = options->stage < 3 ? TRAIN_SLOTS : TRAIN_WEIGHTS; g <= TRAIN_SLOTS;
         g++)
        for (int i = 0; i < count; i++)
            wanted->at[wanted->count++] =
                (struct train_hold){.group = g, .from = slices[i].from, .count = slices[i].count};
}

/* From stage 2 on, sums of the slices that a worker keeps. */
static void zero_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct options *options = q->options;
    struct zero_slice slices[MAX_SLICES];
    int count = zero_slices((size_t)(q->sizes->weights / sizeof(float)), q->seat.rank,
                            q->seat.workers, options->replicas, slices);

    for (int i = 0; options->stage > 1 && i < count; i++)
        m->of[TRAIN_MEMORY_GRADIENTS].own += (double)slices[i].count * sizeof(float);
}

static void zero_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct options *options = q->options;
    double n = q->seat.workers, others = (n - 1) / n, bytes = q->sizes->weights;
    double passed_on = ((double)options->replicas - 1) / n * bytes; /* sums, to other keepers */
    double gathers = options->stage == 3 ? 2 : 1;                   /* of all weights */

    if (n == 1)
        return;
    cost->frail = options->replicas == 1;
    cost->updates = fmin(1, (double)options->replicas / n);
    cost->moved = (n + 1) * bytes + gathers * 2 * (n - 1) * bytes;
    if (options->stage == 1)
        cost->sent = 3 * others * bytes;
    else
        cost->sent = (1 + gathers) * others * bytes + passed_on;
    cost->hidden = options->stage == 3 ? 1 : options->stage == 2 ? 0.5 : 0;
}

/* All that this worker's memory has of a group. */
static void zero_claim_all(struct train_session *s, enum train_group group,
                           struct train_version version)
{
    struct train_state now = s->state;
    struct train_holds all;

    now.claims.count = 0;
    train_state_holds(&now, &all);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.at[i].group == group) {
            all.at[i].version = version;
            s->state.claims.at[s->state.claims.count++] = all.at[i];
        }
}

/* What this worker has after its own update. */
static void zero_claim_own(struct train_session *s, struct train_version version)
{
    const struct zero *z = s->strategy_state;

    for (int i = 0; i < z->count; i++)
        s->state.claims.at[s->state.claims.count++] =
            (struct train_hold){.group = TRAIN_WEIGHTS,
                                .from = z->slices[i].from,
                                .count = z->slices[i].count,
                                .version = version};
    zero_claim_all(s, TRAIN_SLOTS, version);
    zero_claim_all(s, TRAIN_STATISTICS, version);
}

/* ---- a step ---- */

static base_status zero_sum_all(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct zero *z = s->strategy_state;
    struct train_exchange *x = &s->team.exchange;

    TRY(train_exchange_sum(x, NULL));
    train_update_clip(&step->update, x->ranges, x->range_count);
    for (int i = 0; i < z->count; i++)
        z->slices[i].sum = x->ranges[1].sum + z->slices[i].from;
out:
    return st;
}

/* The norm is summed slice by slice. It may differ in its last bits from that of the whole
 * gradient; the scale that follows is rounded to fp32, where that is lost but in one case of some
 * 10^7. */
static base_status zero_clip(struct train_session *s, struct train_update *update)
{
    base_status st = BASE_OK;
    const struct zero *z = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    double mine, all[COMM_MAX_WORKERS], squares = 0;
    size_t from, count;

    if (update->clip == 0)
        return BASE_OK;
    coll_slice(s->state.floats, x->rank, x->size, &from, &count);
    mine = nn_simd()->square_sum(count, train_lending_sums(&z->lending, s, from));
    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    for (int i = 0; i < x->size; i++)
        squares += all[i];
    train_update_clip_by(update, squares);
out:
    return st;
}

static base_status zero_sum_lent(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct zero *z = s->strategy_state;

    TRY(train_lending_finish(&z->lending, s));
    TRY(train_exchange_head(&s->team.exchange));
    TRY(zero_clip(s, &step->update));
    for (int i = 0; i < z->count; i++)
        z->slices[i].sum = train_lending_sums(&z->lending, s, z->slices[i].from);
out:
    return st;
}

static base_status zero_borrow(struct train_session *s, struct nn_loan *loan)
{
    struct zero *z = s->strategy_state;

    return train_lending_borrow(&z->lending, s, loan);
}

static base_status zero_give_back(struct train_session *s, const struct nn_loan *loan,
                                  bool complete)
{
    struct zero *z = s->strategy_state;

    return train_lending_give_back(&z->lending, s, loan, complete);
}

static base_status zero_gather_weights(struct train_session *s)
{
    return coll_all_gather_slices(s->team.exchange.coll, s->state.weights, s->state.floats);
}

static const struct zero_stage zero_stages[] = {
    [1] = {.sum = zero_sum_all, .provide = zero_gather_weights},
    [2] = {.lends = {false, true, zero_borrow, zero_give_back},
           .sum = zero_sum_lent,
           .provide = zero_gather_weights},
    [3] = {.lends = {true, true, zero_borrow, zero_give_back}, .sum = zero_sum_lent},
};

static const struct zero_stage *zero_stage_of(const struct train_session *s)
{
    return &zero_stages[((const struct options *)s->options)->stage];
}

static base_status zero_sum(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;

    train_fault_at(&s->fault, "combine", x->step);
    train_head_fill(s, &step->outcome);
    TRY(zero_stage_of(s)->sum(s, step));
    train_head_read(s, x->mine, &step->outcome);
out:
    return st;
}

static void zero_update(struct train_session *s, const struct train_update *u)
{
    const struct zero *z = s->strategy_state;

    for (int i = 0; i < z->count; i++) {
        const struct zero_slice *slice = &z->slices[i];
        size_t from = slice->from, count = slice->count;
        float *weights = train_state_at(&s->state, TRAIN_WEIGHTS, 0, from, count);
        struct nn_update part = {
            .count = count, .gradient = slice->sum, .weight_in = weights, .weight_out = weights};

        for (int slot = 0; slot < u->optimiser->slots; slot++)
            part.slot_in[slot] = part.slot_out[slot] =
                train_state_at(&s->state, TRAIN_SLOTS, slot, from, count);
        nn_optimiser_update(u->optimiser, &u->hyper, &part);
    }
}

static void zero_commit(struct train_session *s, const struct train_step *step)
{
    train_step_advance(s, step);
    train_step_count(s, &step->outcome, step->batch.count);
}

/* ---- a worker is lost in the meeting ---- */

static struct train_version zero_next_version(const struct train_session *s)
{
    return (struct train_version){s->state.position.step + 1, s->state.position.epoch};
}

/* This worker has the state before the step, and its sums: all that the step needs. They are in
 * memory of the view, which ends. */
static base_status zero_keep(struct train_session *s, const struct train_step *step)
{
    base_status st = BASE_OK;
    struct zero *z = s->strategy_state;
    size_t floats = 0;

    for (int i = 0; i < z->count; i++)
        floats += z->slices[i].count;
    TRY(base_tensor(floats, sizeof(float), "the sums of a step", &z->sums));
    floats = 0;
    for (int i = 0; i < z->count; i++) {
        struct zero_slice *slice = &z->slices[i];

        memcpy(z->sums + floats, slice->sum, slice->count * sizeof(float));
        slice->sum = z->sums + floats;
        floats += slice->count;
    }
    z->step = *step;
    for (enum train_group g = TRAIN_WEIGHTS; g < TRAIN_GROUPS; g++)
        zero_claim_all(s, g, train_state_version(&s->state));
    zero_claim_own(s, zero_next_version(s));
out:
    return st;
}

static void zero_settle(struct train_session *s, struct train_version version)
{
    struct zero *z = s->strategy_state;
    struct train_version next = zero_next_version(s);

    if (z->sums == NULL)
        return;
    s->state.claims.count = 0;
    if (train_version_compare(version, next) == 0) {
        zero_update(s, &z->step.update);
        zero_commit(s, &z->step);
        train_step_tell(s, &z->step);
        zero_claim_own(s, next);
    } else {
        s->team.exchange.step = next.step;
        s->task->undo(s);
    }
    base_free(z->sums);
    z->sums = NULL;
}

/* All have their sums, or none writes a weight. */
static base_status zero_meet(struct train_session *s, const struct train_step *step)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);

    train_fault_at(&s->fault, "meet", x->step);
    st = coll_barrier(x->coll);
    if (st == BASE_ERR_PEER_LOST && zero_keep(s, step) == BASE_OK)
        train_clock_lost(&s->clock, &step->before);
    else if (st != BASE_OK)
        train_step_undo(s, step, st);
    else
        train_clock_enter(&s->clock, was);
    return st;
}

/* The step is done; the weights of the others are to come. */
static base_status zero_provide(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct zero_stage *stage = zero_stage_of(s);
    enum train_category was = train_clock_enter(&s->clock, TRAIN_COMMUNICATE);

    train_fault_at(&s->fault, "gather", s->team.exchange.step);
    if (stage->provide != NULL)
        st = stage->provide(s);
    if (st != BASE_OK)
        zero_claim_own(s, train_state_version(&s->state));
    train_clock_enter(&s->clock, was);
    return st;
}

static base_status zero_step(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_step step;

    TRY(train_step_compute(s, &step)); /* next batch, forward, backward */
    TRY(zero_sum(s, &step));
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    TRY(train_step_judge(s, &step));
out:
    if (st != BASE_OK) {
        train_step_undo(s, &step, st);
        return st;
    }
    if ((st = zero_meet(s, &step)) != BASE_OK)
        return st;
    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    zero_update(s, &step.update);
    train_fault_at(&s->fault, "slice", s->team.exchange.step);
    zero_commit(s, &step);
    st = zero_provide(s);
    train_step_tell(s, &step);
    return st;
}

static base_status zero_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;

    while (s->state.position.step < goal && !train_session_halts(s))
        TRY(zero_step(s));
out:
    return st;
}

/* ---- views ---- */

static const struct train_lends *zero_lends(const void *options)
{
    return &zero_stages[((const struct options *)options)->stage].lends;
}

static base_status zero_open(struct train_session *s)
{
    const struct options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    struct zero *z = s->strategy_state;

    z->count = zero_slices(s->state.floats, x->rank, x->size, options->replicas, z->slices);
    if (!zero_lends(options)->gradients)
        return BASE_OK;
    return train_lending_open(&z->lending, s, *zero_lends(options),
                              options->replicas < x->size ? (int)options->replicas : x->size);
}

static void zero_close(struct train_session *s)
{
    struct zero *z = s->strategy_state;

    train_lending_close(&z->lending, s);
}

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "stage", .argument = "N", .kind = BASE_INT, .offset = AT(stage), .min = 1,
     .max = 3,
     .help = "what is divided: 1 the optimiser's state, 2 gradients too, 3 weights too"},
    {.name = "replicas", .argument = "R", .kind = BASE_INT, .offset = AT(replicas), .min = 1,
     .max = COMM_MAX_WORKERS, .help = "workers that keep each slice; from 2 on a lost worker costs "
     "a step, not a checkpoint"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_zero = {
    .name = "zero",
    .help = "optimiser state, gradients and weights are divided between the workers",
    .commit_unit = "checkpoint, with replicas=2 a step",
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.stage = 1, .replicas = 1},
    .examples = (const char *const[]){"stage=1", "stage=1,replicas=2", "stage=2", "stage=3",
                                      "stage=3,replicas=2", NULL},
    .state_size = sizeof(struct zero),
    .place = zero_place,
    .settle = zero_settle,
    .lends = zero_lends,
    .memory = zero_memory,
    .cost = zero_cost,
    .plans = (const char *const[]){"stage=1", "stage=2", "stage=3", "stage=1,replicas=2",
                                   "stage=2,replicas=2", "stage=3,replicas=2", NULL},
    .open = zero_open,
    .close = zero_close,
    .leg = zero_leg,
};
