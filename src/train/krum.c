/* SPDX-License-Identifier: MIT */
#include "train/krum.h"

#include <math.h>

#include "base/mem.h"

int train_krum_tolerates(int64_t f, int count)
{
    return train_aggregator_bound(f, count >= 3 ? (count - 3) / 2 : 0);
}

/* The sums of distances to the nearest others, of which one counts at least. */
static void krum_scores(const double *d, int count, int f, double *scores)
{
    const int wanted = count - f - 2 > 1 ? count - f - 2 : 1;
    int *order = base_calloc((size_t)count, sizeof *order);

    for (int i = 0; i < count; i++) {
        scores[i] = 0;
        train_distances_order(d, count, i, order);
        for (int k = 1; k <= wanted && k < count; k++)
            scores[i] += d[i * count + order[k]];
    }
    base_free(order);
}

void train_krum_best(const double *d, int count, int f, int keep, int *best)
{
    double *scores = base_calloc((size_t)count, sizeof *scores);

    krum_scores(d, count, f, scores);
    for (int i = 0; i < keep; i++) {
        best[i] = train_least(scores, count);
        scores[best[i]] = INFINITY;
    }
    base_free(scores);
}
