/* SPDX-License-Identifier: MIT
 *
 * The mean in which a worker with a higher loss counts more: its samples are those that the model
 * knows least about. The factor is the worker's loss by the mean loss, within 1/bound … bound, so
 * that one worker cannot take the result over by its word alone.
 */
#include <math.h>

#include "train/aggregator.h"

struct options {
    double bound;
};

static void weighted_weigh(const void *options, const struct train_updates *updates,
                           double *weights)
{
    const struct train_row *rows = updates->rows;
    double bound = ((const struct options *)options)->bound, mean = 0;

    for (int i = 0; i < updates->count; i++)
        mean += rows[i].loss / updates->count;
    for (int i = 0; i < updates->count; i++) {
        double factor = mean > 0 ? rows[i].loss / mean : 1;

        weights[i] = train_row_weight(&rows[i]) * fmin(fmax(factor, 1 / bound), bound);
    }
}

static const struct base_option table[] = {
    {.name = "bound",
     .argument = "X",
     .kind = BASE_REAL,
     .offset = offsetof(struct options, bound),
     .min = 1,
     .max = 1e6,
     .help = "the most that a loss can change a worker's weight by, up or down"},
    {0},
};

const struct train_aggregator train_aggregator_weighted = {
    .name = "weighted",
    .help = "the mean; a worker with a higher loss counts more",
    .believes = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.bound = 2},
    .examples = (const char *const[]){"", "bound=4", NULL},
    .weigh = weighted_weigh,
};
