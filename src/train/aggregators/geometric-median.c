/* SPDX-License-Identifier: MIT
 *
 * The point whose distances to all updates, by samples, have the least sum (RFA, Pillutla et al.,
 * 2019), by Weiszfeld's iteration: a mean in which an update counts by one over its distance from
 * the last mean. Less than half of the samples cannot carry it away. It leans towards them a little
 * more than `median` does, and respects how many samples each worker has.
 */
#include <math.h>

#include "base/mem.h"
#include "train/distances.h"

enum { ROUNDS = 200 };

static const double CLOSE = 1e-12; /* of the squared distances' mean: nearer does not count more */
static const double STILL = 1e-9;  /* no weight moves by more: it is done */

static int geometric_median_tolerates(const void *options, int count)
{
    (void)options;
    return (count - 1) / 2;
}

/* One round: new weights in place of `weights`; the most that one of them has changed by. */
static double geometric_median_move(const struct train_updates *updates, const bool *near,
                                    double *from, double *weights)
{
    const int count = updates->count;
    double spread = 0, sum = 0, moved = 0;

    train_distances_from(updates->distances, count, weights, from);
    for (int i = 0; i < count; i++)
        spread += weights[i] * from[i];
    for (int i = 0; i < count; i++) {
        double distance = sqrt(fmax(from[i], CLOSE * spread));

        from[i] = near[i] ? train_row_weight(&updates->rows[i]) / distance : 0;
        sum += from[i];
    }
    for (int i = 0; i < count; i++) {
        moved = fmax(moved, fabs(from[i] / sum - weights[i]));
        weights[i] = from[i] / sum;
    }
    return moved;
}

static void geometric_median_weigh(const void *options, const struct train_updates *updates,
                                   double *weights)
{
    const int count = updates->count;
    bool *near = base_calloc((size_t)count, sizeof *near);
    double *from = base_calloc((size_t)count, sizeof *from), spread = 0;

    (void)options;
    train_distances_begin(updates, near, weights);
    train_distances_from(updates->distances, count, weights, from);
    for (int i = 0; i < count; i++)
        spread += weights[i] * from[i];
    for (int round = 0; round < ROUNDS && spread > 0; round++)
        if (geometric_median_move(updates, near, from, weights) < STILL)
            break;
    base_free(from);
    base_free(near);
}

const struct train_aggregator train_aggregator_geometric_median = {
    .name = "geometric-median",
    .help = "the point with the least sum of distances to all updates",
    .distances = true,
    .weigh = geometric_median_weigh,
    .tolerates = geometric_median_tolerates,
};
