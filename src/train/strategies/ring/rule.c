/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/rule.h"

static bool ring_rule_allows(const struct ring_rule *rule, const struct ring_track *t,
                             enum ring_way way)
{
    if (way == RING_BACKWARD)
        return t->done[way] < t->done[RING_FORWARD] && (t->last || t->came[way]) &&
               (t->first || t->clear[way]);
    return t->done[way] < rule->pieces && t->done[way] - t->learned < t->limit &&
           (t->first || t->came[way]) && (t->last || t->clear[way]);
}

/* The stage with the oldest micro-batch whose gradients of weights are not complete, or -1. */
static int ring_rule_oldest(const struct ring_rule *rule)
{
    int oldest = -1;

    for (int i = rule->count - 1; i >= 0; i--)
        if (rule->at[i].learned < rule->at[i].done[RING_BACKWARD] &&
            (oldest < 0 || rule->at[i].learned < rule->at[oldest].learned))
            oldest = i;
    return oldest;
}

struct ring_move ring_rule_next(const struct ring_rule *rule)
{
    enum ring_verb idle = RING_END;
    int oldest = ring_rule_oldest(rule);

    for (int way = RING_WAYS - 1; way >= 0; way--)
        for (int i = rule->count - 1; i >= 0; i--) {
            const struct ring_track *t = &rule->at[i];

            if (ring_rule_allows(rule, t, (enum ring_way)way))
                return (struct ring_move){RING_RUN, (enum ring_way)way, i, t->done[way], 0};
            if (t->done[way] < rule->pieces)
                idle = RING_WAIT;
        }
    if (oldest >= 0)
        return (struct ring_move){RING_LEARN, RING_BACKWARD, oldest, rule->at[oldest].learned,
                                  rule->at[oldest].job};
    return (struct ring_move){.verb = idle};
}

void ring_rule_made(struct ring_rule *rule, struct ring_move move)
{
    struct ring_track *t = &rule->at[move.track];

    if (move.verb == RING_RUN)
        t->done[move.way]++;
    if (move.verb == RING_LEARN && ++t->job == t->jobs) {
        t->job = 0;
        t->learned++;
    }
    if (t->jobs == 0)
        t->learned = t->done[RING_BACKWARD];
}
