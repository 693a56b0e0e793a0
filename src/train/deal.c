/* SPDX-License-Identifier: MIT */
#include "train/deal.h"

#include <math.h>

static const double ENOUGH = 0.15, LEAST = 0.1; /* LEAST: of an equal share */

void train_deal_equally(struct train_deal *deal, int size)
{
    *deal = (struct train_deal){.size = size};
    for (int r = 0; r <= size; r++)
        deal->begin[r] = (int)((int64_t)TRAIN_DEAL * r / size);
}

/* One sweep may have been disturbed: the last ones count, the latest of them half. */
static bool remember(struct train_deal *deal, const double *rates)
{
    bool all = true;

    for (int r = 0; r < deal->size; r++) {
        if (isfinite(rates[r]) && rates[r] > 0)
            deal->rate[r] = deal->rate[r] > 0 ? (deal->rate[r] + rates[r]) / 2 : rates[r];
        all &= deal->rate[r] > 0;
    }
    return all;
}

bool train_deal_again(struct train_deal *deal, const double *rates)
{
    int begin[COMM_MAX_WORKERS + 1] = {0};
    double sum = 0, done = 0;
    bool enough = false;

    if (!remember(deal, rates))
        return false;
    for (int r = 0; r < deal->size; r++)
        sum += deal->rate[r];
    for (int r = 0; r < deal->size; r++) {
        const double share = LEAST / deal->size + (1 - LEAST) * deal->rate[r] / sum;
        const double now = (double)(deal->begin[r + 1] - deal->begin[r]) / TRAIN_DEAL;

        enough |= fabs(share / now - 1) > ENOUGH;
        done += share;
        begin[r + 1] = (int)lround(done * TRAIN_DEAL);
    }
    begin[deal->size] = TRAIN_DEAL;
    for (int r = 0; enough && r <= deal->size; r++)
        deal->begin[r] = begin[r];
    return enough;
}
