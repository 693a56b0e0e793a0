/* SPDX-License-Identifier: MIT */
#include "train/momentum.h"

#include <string.h>

#include "base/mem.h"
#include "coll/kernels.h"
#include "train/residual.h"

base_status train_momentum_open(struct train_momentum *m, double stays, const float *mean,
                                size_t floats)
{
    base_status st = BASE_OK;

    m->stays = stays;
    m->floats = floats;
    m->begun = false;
    if (mean == NULL)
        return BASE_OK;
    for (size_t i = 0; i < floats && !m->begun; i++)
        m->begun = mean[i] != 0;
    if (m->next == NULL)
        TRY(base_tensor(floats, sizeof *m->next, "the mean of changes", &m->next));
out:
    return st;
}

void train_momentum_fini(struct train_momentum *m)
{
    base_free(m->next);
    *m = (struct train_momentum){0};
}

void train_momentum_smooth(struct train_momentum *m, const float *mean, float *values)
{
    const float stays = (float)m->stays;

    if (mean == NULL)
        return;
    for (size_t i = 0; i < m->floats && m->begun; i++)
        values[i] = stays * mean[i] + (1 - stays) * values[i];
    memcpy(m->next, values, m->floats * sizeof *values);
    m->waits = true;
    m->counts = false;
}

void train_momentum_commit(struct train_momentum *m, float *mean)
{
    if (mean != NULL && m->waits && m->counts) {
        memcpy(mean, m->next, m->floats * sizeof *mean);
        m->begun = true;
    }
    m->waits = m->counts = false;
}

base_status train_momentum_saving(struct train_momentum *m, struct train_team *team, bool computes,
                                  float **mean_p)
{
    base_status st = BASE_OK;
    const int size = team->exchange.size;

    memcpy(m->next, *mean_p, m->floats * sizeof *m->next);
    if (train_team_leads(team) && !computes) /* what it loaded, or had before, is no worker's */
        memset(m->next, 0, m->floats * sizeof *m->next);
    m->waits = false; /* `next` is room now */
    TRY(train_residual_mean(team, m->next, m->floats));
    if (train_team_leads(team) && !computes) /* the mean of the others */
        coll_scale(m->floats, (float)size / (float)(size - 1), m->next);
    if (train_team_leads(team))
        *mean_p = m->next;
out:
    return st;
}
