/* SPDX-License-Identifier: MIT
 *
 * The mean of every coordinate without its largest and smallest values (Yin et al., ICML 2018):
 * nearly as exact as the mean where all workers are honest, and not moved by `share` of them that
 * are not. Samples and ages do not count.
 */
#include <math.h>

#include "train/aggregator.h"

struct options {
    double share;
};

/* Values that go at each end; one is left at least. */
static int trimmed_mean_tolerates(const void *options, int count)
{
    int cut = (int)ceil(((const struct options *)options)->share * count), most = (count - 1) / 2;

    return cut < most ? cut : most;
}

static void trimmed_mean_take(int count, const float *const *sorted, size_t floats, float *y,
                              int cut)
{
    float scale = 1.0f / (float)(count - 2 * cut);

    for (size_t i = 0; i < floats; i++)
        y[i] = 0;
    for (int row = cut; row < count - cut; row++)
        for (size_t i = 0; i < floats; i++)
            y[i] += sorted[row][i];
    for (size_t i = 0; i < floats; i++)
        y[i] *= scale;
}

static void trimmed_mean_combine(const void *options, const struct train_updates *updates,
                                 const float *weights, size_t floats, float *y)
{
    (void)weights;
    train_rows_sorted(updates, floats, trimmed_mean_take,
                      trimmed_mean_tolerates(options, updates->count), y);
}

static const struct base_option table[] = {
    {.name = "share",
     .argument = "X",
     .kind = BASE_REAL,
     .offset = offsetof(struct options, share),
     .max = 0.5,
     .help = "of the updates that is left out at each end, rounded up"},
    {0},
};

const struct train_aggregator train_aggregator_trimmed_mean = {
    .name = "trimmed-mean",
    .help = "the mean of every coordinate without its extremes",
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.share = 0.2},
    .examples = (const char *const[]){"", "share=0.4", NULL},
    .combine = trimmed_mean_combine,
    .tolerates = trimmed_mean_tolerates,
};
