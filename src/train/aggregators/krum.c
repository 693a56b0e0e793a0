/* SPDX-License-Identifier: MIT
 *
 * Krum (Blanchard et al., NeurIPS 2017): the one update whose nearest others are nearest. It takes
 * the word of one worker, so it learns slower than a mean; multi-krum keeps more of them.
 */
#include "base/mem.h"
#include "train/distances.h"

struct options {
    int64_t f;
};

static int krum_tolerates(const void *options, int count)
{
    return train_krum_tolerates(((const struct options *)options)->f, count);
}

static void krum_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    int best;

    train_krum_scores(updates->distances, updates->count,
                      krum_tolerates(options, updates->count) + 1, weights);
    best = train_least(weights, updates->count);
    for (int i = 0; i < updates->count; i++)
        weights[i] = i == best;
}

static const char *const most[] = {"most", NULL};

static const struct base_option table[] = {
    {.name = "f",
     .argument = "N",
     .kind = BASE_INT,
     .offset = offsetof(struct options, f),
     .max = 1e6,
     .names = most,
     .help = "workers that may send anything; of n updates at most (n - 3)/2"},
    {0},
};

const struct train_aggregator train_aggregator_krum = {
    .name = "krum",
    .help = "the one update that has the nearest neighbours",
    .distances = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){0},
    .examples = (const char *const[]){"", "f=1", NULL},
    .weigh = krum_weigh,
    .tolerates = krum_tolerates,
};
