/* SPDX-License-Identifier: MIT */
#include "train/snapshot.h"

#include <string.h>

#include "base/mem.h"

static base_status allocate(struct train_snapshot *kept, const struct train_state *s)
{
    base_status st = BASE_OK;

    TRY(base_tensor(s->floats, sizeof(float), "the kept weights", &kept->weights));
    for (int i = 0; i < train_state_buffers(s, TRAIN_SLOTS); i++)
        TRY(base_tensor(s->floats, sizeof(float), "the kept optimiser state", &kept->slots[i]));
    TRY(base_tensor(s->stat_floats, sizeof(float), "the kept statistics", &kept->statistics));
    kept->tracked = base_calloc(s->stats, sizeof *kept->tracked);
out:
    return st;
}

static void copy(float *to, const float *from, size_t count)
{
    memcpy(to, from, count * sizeof *to);
}

base_status train_snapshot_take(struct train_snapshot *kept, const struct train_state *s)
{
    base_status st = BASE_OK;

    if (kept->tracked == NULL)
        TRY(allocate(kept, s));
    copy(kept->weights, s->weights, s->floats);
    for (int i = 0; i < train_state_buffers(s, TRAIN_SLOTS); i++)
        copy(kept->slots[i], s->slots[i], s->floats);
    copy(kept->statistics, s->statistics, s->stat_floats);
    memcpy(kept->tracked, s->tracked, s->stats * sizeof *kept->tracked);
    kept->position = s->position;
out:
    return st;
}

void train_snapshot_restore(const struct train_snapshot *kept, struct train_state *s)
{
    if (kept->tracked == NULL)
        return;
    copy(s->weights, kept->weights, s->floats);
    for (int i = 0; i < train_state_buffers(s, TRAIN_SLOTS); i++)
        copy(s->slots[i], kept->slots[i], s->floats);
    copy(s->statistics, kept->statistics, s->stat_floats);
    memcpy(s->tracked, kept->tracked, s->stats * sizeof *s->tracked);
    s->position = kept->position;
}

void train_snapshot_fini(struct train_snapshot *kept)
{
    base_free(kept->weights);
    for (int i = 0; i < TRAIN_MAX_SLOTS; i++)
        base_free(kept->slots[i]);
    base_free(kept->statistics);
    base_free(kept->tracked);
    *kept = (struct train_snapshot){0};
}
