/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/replicas.h"

#include <string.h>

#include "train/strategies/ring/spare.h"

/* Floats [at, at + count) of a stage's weights. */
static void ring_update_range(struct train_session *s, const struct train_update *u,
                              const struct ring_stage *stage, size_t at, size_t count)
{
    size_t from = stage->weights.from + at;
    float *weights = train_state_at(&s->state, TRAIN_WEIGHTS, 0, from, count);
    struct nn_update part = {
        .count = count, .gradient = stage->sum + at, .weight_in = weights, .weight_out = weights};

    if (count == 0)
        return;
    for (int slot = 0; slot < u->optimiser->slots; slot++)
        part.slot_in[slot] = part.slot_out[slot] =
            train_state_at(&s->state, TRAIN_SLOTS, slot, from, count);
    nn_optimiser_update(u->optimiser, &u->hyper, &part);
}

void ring_update_own(struct train_session *s, const struct train_update *update)
{
    const struct ring_stages *r = &ring_of(s)->stages;

    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    for (int i = 0; i < r->count; i++)
        ring_update_range(s, update, &r->at[i], 0, r->at[i].weights.count);
}

void ring_replicas_lack(struct train_session *s, const struct train_update *update)
{
    struct ring *ring = ring_of(s);

    if (ring->rare)
        return;
    ring->lacked = *update;
    ring->lacking = 0;
    ring->lacking_from = 0;
    ring_spare_take(s);
}

bool ring_update_some(struct train_session *s)
{
    enum { SOME = 1 << 16 }; /* floats: a fraction of a millisecond */
    struct ring *ring = ring_of(s);
    const struct ring_stage *stage;
    size_t left;

    if (ring->lacking >= ring->stages.kept_count)
        return false;
    train_trace_enter(&s->trace, TRAIN_DOING_UPDATE);
    stage = &ring->stages.kept[ring->lacking];
    left = stage->weights.count - ring->lacking_from;
    ring_update_range(s, &ring->lacked, stage, ring->lacking_from, left < SOME ? left : SOME);
    ring->lacking_from += SOME;
    if (left <= SOME) {
        ring->lacking++;
        ring->lacking_from = 0;
    }
    return true;
}

void ring_update_replicas(struct train_session *s)
{
    while (ring_update_some(s))
        ;
}

/* Adds the gradients and running statistics of some stages to a list of messages. */
static size_t ring_list(struct ring_stage *stages, int count, int peer, bool sends,
                        float *statistics, struct train_message *list)
{
    size_t messages = 0;

    for (int i = 0; i < count; i++) {
        const struct nn_range *range = &stages[i].statistics;

        if (stages[i].weights.count > 0)
            list[messages++] =
                (struct train_message){peer, sends, stages[i].sum, stages[i].weights.count};
        if (range->count > 0)
            list[messages++] =
                (struct train_message){peer, sends, statistics + range->from, range->count};
    }
    return messages;
}

size_t ring_replicas_list(struct train_session *s, struct train_message *list)
{
    struct ring *ring = ring_of(s);
    const struct train_exchange *x = &s->team.exchange;
    bool spare = ring_overlaps(s);
    size_t count;

    if (ring_options_every(s->options) != 1 || x->size == 1)
        return 0;
    count = ring_list(ring->stages.at, ring->stages.count, (x->rank + 1) % x->size, true,
                      spare ? ring->spare.now.statistics : s->state.statistics, list);
    return count + ring_list(ring->stages.kept, ring->stages.kept_count,
                             ring_cut_before(&ring->stages.cut, x->rank), false,
                             spare ? ring->spare.coming : s->state.statistics, list + count);
}
