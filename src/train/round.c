/* SPDX-License-Identifier: MIT */
#include "train/round.h"

#include <string.h>

#include "base/mem.h"

static base_status allocate(struct train_round *r, const struct train_state *s)
{
    base_status st = BASE_OK;

    TRY(base_tensor(s->floats, sizeof(float), "the round's weights", &r->weights));
    for (int i = 0; i < s->optimiser->slots; i++)
        TRY(base_tensor(s->floats, sizeof(float), "the round's optimiser state", &r->slots[i]));
    TRY(base_tensor(nn_graph_stat_floats(s->graph), sizeof(float), "the round's statistics",
                    &r->statistics));
    r->tracked = base_calloc(nn_graph_stats(s->graph), sizeof *r->tracked);
out:
    return st;
}

static void copy(float *to, const float *from, size_t count)
{
    memcpy(to, from, count * sizeof *to);
}

base_status train_round_keep(struct train_round *r, const struct train_state *s)
{
    base_status st = BASE_OK;

    if (r->tracked == NULL)
        TRY(allocate(r, s));
    copy(r->weights, s->weights, s->floats);
    for (int i = 0; i < s->optimiser->slots; i++)
        copy(r->slots[i], s->slots[i], s->floats);
    copy(r->statistics, s->statistics, nn_graph_stat_floats(s->graph));
    memcpy(r->tracked, s->tracked, nn_graph_stats(s->graph) * sizeof *r->tracked);
    r->position = s->position;
out:
    return st;
}

void train_round_undo(const struct train_round *r, struct train_state *s)
{
    if (r->tracked == NULL)
        return;
    copy(s->weights, r->weights, s->floats);
    for (int i = 0; i < s->optimiser->slots; i++)
        copy(s->slots[i], r->slots[i], s->floats);
    copy(s->statistics, r->statistics, nn_graph_stat_floats(s->graph));
    memcpy(s->tracked, r->tracked, nn_graph_stats(s->graph) * sizeof *s->tracked);
    s->position = r->position;
}

void train_round_fini(struct train_round *r)
{
    base_free(r->weights);
    for (int i = 0; i < NN_MAX_SLOTS; i++)
        base_free(r->slots[i]);
    base_free(r->statistics);
    base_free(r->tracked);
    *r = (struct train_round){0};
}
