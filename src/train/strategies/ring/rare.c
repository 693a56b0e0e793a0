/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/rare.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "train/strategies/ring/spare.h"

void ring_rare_begin(struct train_session *s)
{
    ring_spare_begin(s);
    ring_spare_keep(s);
}

/* Weights (slot -1) or a slot of a stage, where the state has them. */
static float *ring_rare_at(const struct train_session *s, const struct ring_stage *stage, int slot)
{
    const struct nn_range *range = &stage->weights;

    return slot < 0 ? train_state_at(&s->state, TRAIN_WEIGHTS, 0, range->from, range->count)
                    : train_state_at(&s->state, TRAIN_SLOTS, slot, range->from, range->count);
}

/* Where those of a replica come to. */
static float *ring_rare_room(const struct ring *ring, int kept, int slot)
{
    return slot < 0 ? ring->stages.kept[kept].sum : ring->spare.slots[kept][slot];
}

/* Adds a stage of this worker to a list of messages. */
static size_t ring_rare_send(const struct train_session *s, const struct ring_stage *stage,
                             int peer, struct train_message *list)
{
    const struct nn_range *range = &stage->statistics;
    size_t count = 0;

    for (int k = -1; k < s->state.optimiser->slots && stage->weights.count > 0; k++)
        list[count++] =
            (struct train_message){peer, true, ring_rare_at(s, stage, k), stage->weights.count};
    if (range->count > 0)
        list[count++] =
            (struct train_message){peer, true, s->state.statistics + range->from, range->count};
    return count;
}

/* Adds what comes for a replica. */
static size_t ring_rare_receive(const struct train_session *s, int kept, struct train_message *list)
{
    const struct ring *ring = ring_of(s);
    const struct ring_stage *stage = &ring->stages.kept[kept];
    const struct nn_range *range = &stage->statistics;
    size_t count = 0;

    for (int k = -1; k < s->state.optimiser->slots && stage->weights.count > 0; k++)
        list[count++] = (struct train_message){stage->worker, false, ring_rare_room(ring, kept, k),
                                               stage->weights.count};
    if (range->count > 0)
        list[count++] = (struct train_message){stage->worker, false,
                                               ring->spare.coming + range->from, range->count};
    return count;
}

static base_status ring_rare_pass(struct train_session *s)
{
    enum { EACH = 2 + NN_MAX_SLOTS };
    const struct ring_stages *r = &ring_of(s)->stages;
    struct train_message list[2 * RING_MAX_KEPT * EACH];
    size_t count = 0;

    for (int places = 1; places < r->copies; places++)
        for (int i = 0; i < r->count; i++)
            count += ring_rare_send(s, &r->at[i], ring_cut_near(&r->cut, r->mail.rank, places),
                                    list + count);
    for (int i = 0; i < r->kept_count; i++)
        count += ring_rare_receive(s, i, list + count);
    return train_team_pass(&s->team, list, count);
}

void ring_rare_accept(struct train_session *s)
{
    struct ring *ring = ring_of(s);

    for (int i = 0; i < ring->stages.kept_count; i++) {
        const struct ring_stage *stage = &ring->stages.kept[i];
        const struct nn_range *statistics = &stage->statistics;

        for (int k = -1; k < s->state.optimiser->slots && stage->weights.count > 0; k++)
            memcpy(ring_rare_at(s, stage, k), ring_rare_room(ring, i, k),
                   stage->weights.count * sizeof(float));
        memcpy(s->state.statistics + statistics->from, ring->spare.coming + statistics->from,
               statistics->count * sizeof(float));
    }
    ring_rare_begin(s);
}

base_status ring_rare_renew(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring *ring = ring_of(s);
    enum train_category was = train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    int64_t mine = s->state.position.step, all[COMM_MAX_WORKERS];

    train_fault_at(&s->fault, "renew", mine);
    TRY(ring_rare_pass(s));
    train_clock_enter(&s->clock, TRAIN_WAIT);
    train_fault_at(&s->fault, "renewed", mine);
    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    ring_rare_accept(s);
out:
    train_clock_enter(&s->clock, was);
    ring->renewing = st == BASE_ERR_PEER_LOST;
    return st;
}

void ring_rare_lose(struct train_session *s, int64_t from)
{
    int64_t lost = from - s->state.position.step;

    s->lost_samples += s->samples - ring_of(s)->spare.before.samples;
    if (lost == 0)
        return;
    s->lost_steps += lost;
    if (train_team_leads(&s->team))
        base_warn("all go back from step %" PRId64 " to step %" PRId64
                  ", at which replicas were renewed last",
                  from, s->state.position.step);
    train_journal_back(&s->journal, from, s->state.position.step);
}
