/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/rule.h"

static bool ring_rule_allows(const struct ring_rule *rule, const struct ring_track *t,
                             enum ring_way way)
{
    int flying = t->done[RING_FORWARD] - t->done[RING_BACKWARD];

    if (way == RING_BACKWARD)
        return flying > 0 && (t->last || t->came[way]) && (t->first || t->clear[way]);
    return t->done[way] < rule->pieces && flying < t->limit && (t->first || t->came[way]) &&
           (t->last || t->clear[way]);
}

struct ring_move ring_rule_next(const struct ring_rule *rule)
{
    enum ring_verb idle = RING_END;

    for (int way = RING_WAYS - 1; way >= 0; way--)
        for (int i = rule->count - 1; i >= 0; i--) {
            const struct ring_track *t = &rule->at[i];

            if (ring_rule_allows(rule, t, (enum ring_way)way))
                return (struct ring_move){RING_RUN, (enum ring_way)way, i, t->done[way]};
            if (t->done[way] < rule->pieces)
                idle = RING_WAIT;
        }
    return (struct ring_move){.verb = idle};
}

void ring_rule_made(struct ring_rule *rule, struct ring_move move)
{
    rule->at[move.track].done[move.way]++;
}
