/* SPDX-License-Identifier: MIT
 *
 * After FLTrust (Cao et al., NDSS 2021): one update is trusted, that of the worker in the manager's
 * process, whose samples are the root of all trust. Every other update counts by the cosine between
 * it and the trusted one, not at all where that is negative, and with the length of the trusted
 * one: no update can win by being large, and any number of workers may be hostile. It learns as
 * much as the trusted samples tell of all others. Running statistics are the trusted worker's
 * alone: a sum of scaled ones could make a variance negative.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "train/aggregator.h"

/* There is one: train_aggregate makes no update without. */
static int fltrust_root(const struct train_updates *updates)
{
    int root = 0;

    while (!updates->rows[root].trusted)
        root++;
    return root;
}

static void fltrust_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    const int count = updates->count, root = fltrust_root(updates);
    const double *squares = updates->squares;

    (void)options;
    for (int i = 0; i < count; i++) {
        double product = (squares[i] + squares[root] - updates->distances[i * count + root]) / 2;
        double lengths = sqrt(squares[i]) * sqrt(squares[root]);

        weights[i] = lengths > 0 ? fmax(product / lengths, 0) : 0;
    }
    weights[root] = 1; /* also where it is zeros */
}

static void fltrust_combine(const void *options, const struct train_updates *updates,
                            const float *weights, size_t floats, float *y)
{
    const int root = fltrust_root(updates);
    const double length = sqrt(updates->squares[root]);
    const size_t weighed = floats - updates->statistics;
    float *scaled = base_calloc((size_t)updates->count, sizeof *scaled);

    (void)options;
    for (int i = 0; i < updates->count; i++)
        if (updates->squares[i] > 0)
            scaled[i] = (float)((double)weights[i] * length / sqrt(updates->squares[i]));
    train_rows_sum(updates, scaled, weighed, y);
    memcpy(y + weighed, updates->rows[root].values + weighed, updates->statistics * sizeof *y);
    base_free(scaled);
}

const struct train_aggregator train_aggregator_fltrust = {
    .name = "fltrust",
    .help = "what points where the update of the manager's own worker does, with its length",
    .distances = true,
    .trusts = true,
    .weigh = fltrust_weigh,
    .combine = fltrust_combine,
};
