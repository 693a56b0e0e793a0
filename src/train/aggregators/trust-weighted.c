/* SPDX-License-Identifier: MIT
 *
 * The mean in which an update counts by what it is worth on samples that the manager has kept
 * apart: a worker's own loss can be a lie. The weight is (lowest loss / this one's) ^ power, so
 * that an update with ten times the lowest loss counts for a hundredth with the usual power of 2,
 * and one whose loss is no number for nothing.
 */
#include <math.h>

#include "train/aggregator.h"

struct options {
    double power;
};

static const double LEAST = 1e-6; /* below this, losses do not tell updates apart */

static void trust_weighted_weigh(const void *options, const struct train_updates *updates,
                                 double *weights)
{
    const struct train_row *rows = updates->rows;
    double power = ((const struct options *)options)->power, lowest = INFINITY;

    for (int i = 0; i < updates->count; i++)
        if (isfinite(rows[i].judged) && rows[i].judged < lowest)
            lowest = fmax(rows[i].judged, LEAST);
    for (int i = 0; i < updates->count; i++) {
        double loss = fmax(rows[i].judged, LEAST);

        weights[i] =
            isfinite(rows[i].judged) ? train_row_weight(&rows[i]) * pow(lowest / loss, power) : 0;
    }
}

static const struct base_option table[] = {
    {.name = "power",
     .argument = "X",
     .kind = BASE_REAL,
     .offset = offsetof(struct options, power),
     .max = 100,
     .help = "how much a higher loss on the manager's samples costs"},
    {0},
};

const struct train_aggregator train_aggregator_trust_weighted = {
    .name = "trust-weighted",
    .help = "the mean, by the loss of each update on the manager's validation samples",
    .judges = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.power = 2},
    .examples = (const char *const[]){"", "power=1", NULL},
    .weigh = trust_weighted_weigh,
};
