/* SPDX-License-Identifier: MIT
 *
 * A strategy of the simulation alone: every worker holds random ranges of the weights and of the
 * optimiser's state, each range is held by at least one worker, and every view draws them anew. So
 * entering a view, saving, loading and going back meet every kind of place. A step is summed by all
 * and each worker updates what it holds; as in zero.c all meet before, and a worker that loses
 * another in the meeting has both versions.
 */
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/step.h"

enum { MAX_RANGES = 12 };

struct options {
    int64_t seed;
};

struct scattered {
    struct train_step step; /* that waits to be settled, … */
    float *sums;            /* … and its sums; NULL: none waits */
};

static void scattered_hold(struct train_holds *wanted, uint32_t group, uint64_t from, uint64_t end)
{
    struct train_hold *last = wanted->count > 0 ? &wanted->at[wanted->count - 1] : NULL;

    if (end <= from)
        return;
    if (last != NULL && last->group == group && last->from + last->count == from)
        last->count += end - from;
    else
        wanted->at[wanted->count++] =
            (struct train_hold){.group = group, .from = from, .count = end - from};
}

static void scattered_place(const struct train_placing *p, int rank, struct train_holds *wanted)
{
    const struct options *options = p->options;
    struct base_rng rng =
        base_rng_of((uint64_t)options->seed, BASE_STREAM_TEST, (uint32_t)p->size, 0, 0);
    uint32_t index = 0, ranges = 1 + base_rng_u32(&rng, index++) % MAX_RANGES;

    for (uint32_t group = TRAIN_WEIGHTS; group <= TRAIN_SLOTS; group++) {
        uint64_t size = p->floats[group], from = 0;

        index = 1; /* weights and slots of a range are held together: updates need both */
        for (uint32_t i = 0; i < ranges; i++) {
            uint64_t end = i + 1 == ranges ? size : size * (i + 1) / ranges;
            bool owns = base_rng_u32(&rng, index++) % (uint32_t)p->size == (uint32_t)rank;
            uint32_t copies = base_rng_u32(&rng, index++) % 3; /* 0: the owner's alone */

            end = i + 1 == ranges ? end : end + base_rng_u32(&rng, index) % (size - end + 1) / 8;
            index++;
            for (int other = 0; other < p->size; other++) {
                bool keeps = base_rng_u32(&rng, index++) % 3 < copies;

                owns |= keeps && other == rank;
            }
            if (owns)
                scattered_hold(wanted, group, from, end);
            from = end > from ? end : from;
        }
    }
}

static void scattered_claim(struct train_session *s, struct train_version version)
{
    struct train_state now = s->state;
    struct train_holds all;

    now.claims.count = 0;
    train_state_holds(&now, &all);
    for (uint32_t i = 0; i < all.count; i++) {
        all.at[i].version = version;
        s->state.claims.at[s->state.claims.count++] = all.at[i];
    }
}

static void scattered_apply(struct train_session *s, const struct train_step *step,
                            const float *sums)
{
    const struct train_update *u = &step->update;
    struct train_holds held;

    s->state.claims.count = 0;
    train_state_holds(&s->state, &held);
    for (uint32_t i = 0; i < held.count; i++) {
        size_t from = held.at[i].from, count = held.at[i].count;
        struct nn_update part = {.count = count, .gradient = sums + from};

        if (held.at[i].group != TRAIN_WEIGHTS)
            continue;
        part.weight_out = train_state_at(&s->state, TRAIN_WEIGHTS, 0, from, count);
        part.weight_in = part.weight_out;
        for (int slot = 0; slot < u->optimiser->slots; slot++)
            part.slot_in[slot] = part.slot_out[slot] =
                train_state_at(&s->state, TRAIN_SLOTS, slot, from, count);
        nn_optimiser_update(u->optimiser, &u->hyper, &part);
    }
    train_step_advance(s, step);
    train_step_count(s, &step->outcome, step->batch.count);
    train_step_tell(s, step);
}

static struct train_version scattered_next(const struct train_session *s)
{
    return (struct train_version){s->state.position.step + 1, s->state.position.epoch};
}

static void scattered_settle(struct train_session *s, struct train_version version)
{
    struct scattered *state = s->strategy_state;

    if (state->sums == NULL)
        return;
    if (train_version_compare(version, scattered_next(s)) == 0) {
        scattered_apply(s, &state->step, state->sums);
    } else {
        s->team.exchange.step = s->state.position.step + 1;
        s->task->undo(s);
    }
    s->state.claims.count = 0;
    base_free(state->sums);
    state->sums = NULL;
}

/* The sums are in memory of the view, which ends. */
static void scattered_keep(struct train_session *s, const struct train_step *step,
                           const float *sums)
{
    struct scattered *state = s->strategy_state;

    state->step = *step;
    state->sums = base_calloc(s->state.floats, sizeof *sums);
    memcpy(state->sums, sums, s->state.floats * sizeof *sums);
    scattered_claim(s, train_state_version(&s->state));
    scattered_claim(s, scattered_next(s));
}

static base_status scattered_step(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    struct train_step step;

    TRY(train_step_compute(s, &step));
    train_head_fill(s, &step.outcome);
    TRY(train_exchange_sum(x, NULL));
    train_head_read(s, x->mine, &step.outcome);
    TRY(train_step_judge(s, &step));
    st = coll_barrier(x->coll);
    if (st == BASE_ERR_PEER_LOST) {
        scattered_keep(s, &step, x->ranges[1].sum);
        return st;
    }
    TRY(st);
    scattered_apply(s, &step, x->ranges[1].sum);
    TRY(coll_barrier(x->coll)); /* before the sums are overwritten */
out:
    if (st != BASE_OK && s->state.position.step < x->step)
        train_step_undo(s, &step, st);
    return st;
}

static base_status scattered_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;

    while (s->state.position.step < goal && !train_session_halts(s))
        TRY(scattered_step(s));
out:
    return st;
}

static const struct base_option table[] = {
    {.name = "seed",
     .argument = "N",
     .kind = BASE_INT,
     .offset = offsetof(struct options, seed),
     .max = 1e9,
     .help = "of the places"},
    {0},
};

const struct train_strategy train_strategy_scattered = {
    .name = "scattered",
    .help = "random ranges are everywhere",
    .commit_unit = "checkpoint",
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){0},
    .state_size = sizeof(struct scattered),
    .place = scattered_place,
    .settle = scattered_settle,
    .leg = scattered_leg,
};
