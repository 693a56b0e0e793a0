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

/* Adds the gradients and the running statistics of a stage to a list of messages. */
static size_t ring_list(const struct ring_stage *stage, int peer, bool sends, float *statistics,
                        struct train_message *list)
{
    const struct nn_range *range = &stage->statistics;
    size_t count = 0;

    if (stage->weights.count > 0)
        list[count++] = (struct train_message){peer, sends, stage->sum, stage->weights.count};
    if (range->count > 0)
        list[count++] = (struct train_message){peer, sends, statistics + range->from, range->count};
    return count;
}

size_t ring_replicas_list(struct train_session *s, struct train_message *list)
{
    struct ring *ring = ring_of(s);
    const struct ring_stages *r = &ring->stages;
    bool spare = ring_overlaps(s);
    float *mine = spare ? ring->spare.now.statistics : s->state.statistics,
          *theirs = spare ? ring->spare.coming : s->state.statistics;
    size_t count = 0;

    if (ring_is_rare(s))
        return 0;
    for (int places = 1; places < r->copies; places++)
        for (int i = 0; i < r->count; i++)
            count += ring_list(&r->at[i], ring_cut_near(&r->cut, r->mail.rank, places), true, mine,
                               list + count);
    for (int i = 0; i < r->kept_count; i++)
        count += ring_list(&r->kept[i], r->kept[i].worker, false, theirs, list + count);
    return count;
}
