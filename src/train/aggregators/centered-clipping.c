/* SPDX-License-Identifier: MIT
 *
 * Centered clipping (Karimireddy et al., ICML 2021): from a first guess the mean moves, a few
 * times, by the mean of all differences to it, each cut to a radius. The radius is the median
 * distance, so that it needs no setting: what is farther away than half of the updates pulls no
 * more than they do. Every update counts by its samples, and none is thrown out but those that are
 * a million times as far away.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "train/distances.h"

enum { ROUNDS = 20 };

static int centered_clipping_tolerates(const void *options, int count)
{
    (void)options;
    return (count - 1) / 2;
}

static int centered_clipping_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The mean at `weights` moves once. `from`, `sorted`: room for count values each. */
static void centered_clipping_move(const struct train_updates *updates, const bool *near,
                                   double *from, double *sorted, double *weights)
{
    const int count = updates->count;
    double samples = 0, pulled = 0, radius;

    train_distances_from(updates->distances, count, weights, from);
    for (int i = 0; i < count; i++) {
        sorted[i] = from[i];
        samples += train_row_weight(&updates->rows[i]);
    }
    qsort(sorted, (size_t)count, sizeof *sorted, centered_clipping_ascending);
    radius = sorted[count / 2];
    for (int i = 0; i < count; i++) {
        double share = train_row_weight(&updates->rows[i]) / samples;

        from[i] = near[i] ? share * sqrt(from[i] > radius ? radius / from[i] : 1) : 0;
        pulled += from[i];
    }
    for (int i = 0; i < count; i++)
        weights[i] = (1 - pulled) * weights[i] + from[i];
}

static void centered_clipping_weigh(const void *options, const struct train_updates *updates,
                                    double *weights)
{
    const size_t count = (size_t)updates->count;
    bool *near = base_calloc(count, sizeof *near);
    double *room = base_calloc(2 * count, sizeof *room);

    (void)options;
    train_distances_begin(updates, near, weights);
    for (int round = 0; round < ROUNDS; round++)
        centered_clipping_move(updates, near, room, room + count, weights);
    base_free(room);
    base_free(near);
}

const struct train_aggregator train_aggregator_centered_clipping = {
    .name = "centered-clipping",
    .help = "the mean; what is farther away than half of the updates is cut to that distance",
    .distances = true,
    .weigh = centered_clipping_weigh,
    .tolerates = centered_clipping_tolerates,
};
