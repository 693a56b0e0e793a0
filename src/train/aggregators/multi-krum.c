/* SPDX-License-Identifier: MIT
 *
 * Multi-krum (Blanchard et al., NeurIPS 2017): the mean, by samples, of the updates with the best
 * scores of krum; all but f of them unless `keep` says fewer.
 */
#include "base/mem.h"
#include "train/krum.h"

struct options {
    int64_t f, keep;
};

static int multi_krum_tolerates(const void *options, int count)
{
    return train_krum_tolerates(((const struct options *)options)->f, count);
}

static void multi_krum_weigh(const void *options, const struct train_updates *updates,
                             double *weights)
{
    const struct options *o = options;
    const int count = updates->count, f = multi_krum_tolerates(options, count);
    const int keep = o->keep > 0 && o->keep < count - f ? (int)o->keep : count - f;
    int *best = base_calloc((size_t)keep, sizeof *best);

    train_krum_best(updates->distances, count, f, keep, best);
    for (int i = 0; i < keep; i++)
        weights[best[i]] = train_row_weight(&updates->rows[best[i]]);
    base_free(best);
}

static const struct base_option table[] = {
    {.table = train_aggregator_f, .offset = offsetof(struct options, f)},
    {.name = "keep",
     .argument = "N",
     .kind = BASE_INT,
     .offset = offsetof(struct options, keep),
     .max = 1e6,
     .names = (const char *const[]){"others", NULL},
     .help = "updates that are averaged; at most all but f"},
    {0},
};

const struct train_aggregator train_aggregator_multi_krum = {
    .name = "multi-krum",
    .help = "the mean of the updates that have the nearest neighbours",
    .distances = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){0},
    .examples = (const char *const[]){"", "f=2", "f=1,keep=4", NULL},
    .weigh = multi_krum_weigh,
    .tolerates = multi_krum_tolerates,
};
