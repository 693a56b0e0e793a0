/* SPDX-License-Identifier: MIT
 *
 * Krum (Blanchard et al., NeurIPS 2017): the one update whose nearest others are nearest. It takes
 * the word of one worker, so it learns slower than a mean; multi-krum keeps more of them.
 */
#include "train/krum.h"

struct options {
    int64_t f;
};

static int krum_tolerates(const void *options, int count)
{
    return train_krum_tolerates(((const struct options *)options)->f, count);
}

static void krum_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    const int count = updates->count;
    int best;

    train_krum_best(updates->distances, count, krum_tolerates(options, count), 1, &best);
    weights[best] = 1;
}

const struct train_aggregator train_aggregator_krum = {
    .name = "krum",
    .help = "the one update that has the nearest neighbours",
    .distances = true,
    .options = train_aggregator_f,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){0},
    .examples = (const char *const[]){"", "f=1", NULL},
    .weigh = krum_weigh,
    .tolerates = krum_tolerates,
};
