/* SPDX-License-Identifier: MIT
 *
 * The median of every coordinate (Yin et al., ICML 2018): as long as less than half of the workers
 * send anything but honest updates, each coordinate lies between those of honest ones. Samples and
 * ages do not count.
 */
#include "train/aggregator.h"

static int median_tolerates(const void *options, int count)
{
    (void)options;
    return (count - 1) / 2;
}

/* Of an even number the mean of the two in the middle. */
static void median_take(int count, const float *const *sorted, size_t floats, float *y, int cut)
{
    const float *low = sorted[(count - 1) / 2], *high = sorted[count / 2];

    (void)cut;
    for (size_t i = 0; i < floats; i++)
        y[i] = 0.5f * low[i] + 0.5f * high[i];
}

static void median_combine(const void *options, const struct train_updates *updates,
                           const float *weights, size_t floats, float *y)
{
    (void)options;
    (void)weights;
    train_rows_sorted(updates, floats, median_take, 0, y);
}

const struct train_aggregator train_aggregator_median = {
    .name = "median",
    .help = "the median of every coordinate",
    .combine = median_combine,
    .tolerates = median_tolerates,
};
