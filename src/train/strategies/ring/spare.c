/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/spare.h"

#include <string.h>

#include "base/mem.h"

static base_status ring_moment_open(struct ring_moment *m, const struct train_state *state)
{
    m->tracked = base_calloc(state->stats, sizeof *m->tracked);
    return base_tensor(state->stat_floats, sizeof(float), "running statistics", &m->statistics);
}

static void ring_moment_close(struct ring_moment *m)
{
    base_free(m->statistics);
    base_free(m->tracked);
}

base_status ring_spare_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring *ring = ring_of(s);
    struct ring_spare *spare = &ring->spare;
    bool sends = ring_overlaps(s) && ring_options_every(s->options) == 1;

    if (ring_is_async(s) || (!ring_overlaps(s) && !ring_is_rare(s)))
        return BASE_OK;
    TRY(ring_moment_open(&spare->before, &s->state));
    TRY(ring_moment_open(&spare->now, &s->state));
    TRY(base_tensor(s->state.stat_floats, sizeof(float), "running statistics", &spare->coming));
    for (int i = 0; i < ring->stages.count; i++) {
        size_t floats = ring->stages.at[i].weights.count;

        for (int k = 0; k <= s->state.optimiser->slots; k++)
            TRY(base_tensor(floats, sizeof(float), "a copy of a stage", &spare->former[i][k]));
        if (sends)
            TRY(base_tensor(floats, sizeof(float), "gradients for a neighbour", &spare->sent[i]));
    }
    for (int i = 0; i < ring->stages.kept_count && ring_is_rare(s); i++)
        for (int k = 0; k < s->state.optimiser->slots; k++)
            TRY(base_tensor(ring->stages.kept[i].weights.count, sizeof(float),
                            "a copy of a neighbour's stage", &spare->slots[i][k]));
out:
    return st;
}

void ring_spare_close(struct ring *ring)
{
    struct ring_spare *spare = &ring->spare;

    ring_moment_close(&spare->before);
    ring_moment_close(&spare->now);
    base_free(spare->coming);
    for (int i = 0; i < RING_MAX_LAPS; i++) {
        for (int k = 0; k <= NN_MAX_SLOTS; k++)
            base_free(spare->former[i][k]);
        base_free(spare->sent[i]);
    }
    for (int i = 0; i < RING_MAX_KEPT; i++)
        for (int k = 0; k < NN_MAX_SLOTS; k++)
            base_free(spare->slots[i][k]);
    *spare = (struct ring_spare){0};
}

/* ---- running statistics ---- */

static void ring_copy_statistics(const struct ring_stage *stages, int count, const float *from,
                                 float *to)
{
    for (int i = 0; i < count; i++) {
        const struct nn_range *range = &stages[i].statistics;

        memcpy(to + range->from, from + range->from, range->count * sizeof(float));
    }
}

static void ring_copy_tracked(const struct train_session *s, const int64_t *from, int64_t *to)
{
    memcpy(to, from, s->state.stats * sizeof *to);
}

void ring_spare_begin(struct train_session *s)
{
    struct ring_moment *now = &ring_of(s)->spare.now;

    memcpy(now->statistics, s->state.statistics, s->state.stat_floats * sizeof(float));
    ring_copy_tracked(s, s->state.tracked, now->tracked);
}

void ring_spare_take(struct train_session *s)
{
    struct ring *ring = ring_of(s);

    if (ring->spare.coming != NULL)
        ring_copy_statistics(ring->stages.kept, ring->stages.kept_count, ring->spare.coming,
                             ring->spare.now.statistics);
}

void ring_spare_end(struct train_session *s)
{
    memcpy(s->state.statistics, ring_of(s)->spare.now.statistics,
           s->state.stat_floats * sizeof(float));
}

/* ---- versions ---- */

/* Weights and slots of this worker's stages, from the state to the copy or back. */
static void ring_spare_copy(struct train_session *s, bool back)
{
    struct ring *ring = ring_of(s);

    for (int i = 0; i < ring->stages.count; i++) {
        const struct nn_range *range = &ring->stages.at[i].weights;

        for (int k = 0; k <= s->state.optimiser->slots && range->count > 0; k++) {
            float *held =
                k == 0 ? train_state_at(&s->state, TRAIN_WEIGHTS, 0, range->from, range->count)
                       : train_state_at(&s->state, TRAIN_SLOTS, k - 1, range->from, range->count);
            float *copy = ring->spare.former[i][k];

            memcpy(back ? held : copy, back ? copy : held, range->count * sizeof(float));
        }
    }
}

void ring_spare_keep(struct train_session *s)
{
    struct ring *ring = ring_of(s);
    struct ring_moment *now = &ring->spare.now, *before = &ring->spare.before;

    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    ring_spare_copy(s, false);
    before->position = s->state.position;
    before->samples = s->samples;
    memcpy(before->statistics, now->statistics, s->state.stat_floats * sizeof(float));
    ring_copy_tracked(s, now->tracked, before->tracked);
    ring_copy_statistics(ring->stages.at, ring->stages.count, s->state.statistics, now->statistics);
    ring_copy_tracked(s, s->state.tracked, now->tracked);
}

void ring_spare_send(struct train_session *s)
{
    struct ring *ring = ring_of(s);

    for (int i = 0; i < ring->stages.count && ring->spare.sent[i] != NULL; i++) {
        float *sum = ring->stages.at[i].sum;

        ring->stages.at[i].sum = ring->spare.sent[i];
        ring->spare.sent[i] = sum;
    }
}

void ring_spare_restore(struct train_session *s)
{
    struct ring *ring = ring_of(s);
    const struct ring_moment *before = &ring->spare.before;

    ring_spare_copy(s, true);
    s->state.position = before->position;
    ring_copy_statistics(ring->stages.at, ring->stages.count, before->statistics,
                         s->state.statistics);
    ring_copy_tracked(s, before->tracked, s->state.tracked);
    train_trace_back(&s->trace, s->state.position.step);
}
