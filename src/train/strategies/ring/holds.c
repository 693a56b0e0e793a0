/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/holds.h"

static void ring_hold(struct train_holds *holds, enum train_group group,
                      const struct nn_range *range, struct train_version version)
{
    struct train_hold *last = holds->count > 0 ? &holds->at[holds->count - 1] : NULL;

    if (range->count == 0)
        return;
    if (last != NULL && last->group == group && last->from + last->count == range->from &&
        train_version_compare(last->version, version) == 0)
        last->count += range->count; /* neighbours are one */
    else
        holds->at[holds->count++] = (struct train_hold){
            .group = group, .from = range->from, .count = range->count, .version = version};
}

void ring_place(const struct train_placing *p, int rank, struct train_holds *wanted)
{
    const struct ring_options *options = p->options;
    int copies = ring_options_copies(options, p->size);
    struct ring_cut cut;

    ring_cut_make(p->graph, options, p->size, &cut);
    for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++)
        for (int i = 0; i < cut.stages && p->floats[g] > 0; i++) {
            struct nn_range range = nn_graph_weights_of(p->graph, cut.first[i], cut.first[i + 1]);

            if (ring_cut_holds(&cut, copies, rank, i))
                ring_hold(wanted, g, &range, (struct train_version){0});
        }
}

void ring_claim(const struct ring_stages *stages, struct train_session *s,
                struct train_version version)
{
    const struct ring_cut *cut = &stages->cut;
    int copies = ring_options_copies(s->options, cut->workers);
    bool united = s->united_step == version.step;
    struct train_state now = s->state;
    uint32_t before = s->state.claims.count;
    struct train_holds all;

    now.claims.count = 0;
    train_state_holds(&now, &all);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.at[i].group != TRAIN_STATISTICS || united) {
            all.at[i].version = version;
            s->state.claims.at[s->state.claims.count++] = all.at[i];
        }
    for (int i = 0; i < cut->stages && !united; i++) {
        struct nn_range range = nn_graph_stats_of(s->state.graph, cut->first[i], cut->first[i + 1]);

        if (ring_cut_holds(cut, copies, stages->mail.rank, i))
            ring_hold(&s->state.claims, TRAIN_STATISTICS, &range, version);
    }
    /* A worker without a stage or a replica says so: no claims at all would be all of its memory,
     * old statistics included. */
    if (s->state.claims.count == before)
        s->state.claims.at[s->state.claims.count++] = (struct train_hold){.version = version};
}

base_status ring_share_statistics(const struct ring_stages *stages, struct train_session *s)
{
    base_status st = BASE_OK;
    const struct ring_cut *cut = &stages->cut;

    for (int i = 0; i < cut->stages; i++) {
        struct nn_range range = nn_graph_stats_of(s->state.graph, cut->first[i], cut->first[i + 1]);

        if (range.count > 0)
            TRY(train_team_broadcast(&s->team, ring_cut_worker(cut, i),
                                     s->state.statistics + range.from,
                                     range.count * sizeof(float)));
    }
out:
    return st;
}
