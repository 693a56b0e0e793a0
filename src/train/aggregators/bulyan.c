/* SPDX-License-Identifier: MIT
 *
 * Bulyan (El Mhamdi et al., ICML 2018): krum's scores choose n - 2f updates; then each coordinate
 * is the mean of the n - 4f values that are nearest to its median. An attack that hides in a few
 * coordinates passes krum and fails here. The paper lets krum choose again after each choice; the
 * last choices are then between two nearest neighbours, by chance. Samples and ages do not count.
 */
#include "base/mem.h"
#include "train/krum.h"

struct options {
    int64_t f;
};

static int bulyan_tolerates(const void *options, int count)
{
    return train_aggregator_bound(((const struct options *)options)->f,
                                  count >= 3 ? (count - 3) / 4 : 0);
}

static void bulyan_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    const int count = updates->count, f = bulyan_tolerates(options, count), keep = count - 2 * f;
    int *best = base_calloc((size_t)keep, sizeof *best);

    train_krum_best(updates->distances, count, f, keep, best);
    for (int i = 0; i < keep; i++)
        weights[best[i]] = 1;
    base_free(best);
}

/* The mean of the count - 2·cut values that are nearest to the median. */
static void bulyan_take(int count, const float *const *sorted, size_t floats, float *y, int cut)
{
    const int wanted = count - 2 * cut;

    for (size_t i = 0; i < floats; i++) {
        float median = 0.5f * sorted[(count - 1) / 2][i] + 0.5f * sorted[count / 2][i], sum = 0;
        int first = 0;

        while (first + wanted < count &&
               median - sorted[first][i] > sorted[first + wanted][i] - median)
            first++;
        for (int row = first; row < first + wanted; row++)
            sum += sorted[row][i];
        y[i] = sum / (float)wanted;
    }
}

static void bulyan_combine(const void *options, const struct train_updates *updates,
                           const float *weights, size_t floats, float *y)
{
    struct train_row *chosen = base_calloc((size_t)updates->count, sizeof *chosen);
    struct train_updates those = {.rows = chosen};

    for (int i = 0; i < updates->count; i++)
        if (weights[i] > 0)
            chosen[those.count++] = updates->rows[i];
    train_rows_sorted(&those, floats, bulyan_take, bulyan_tolerates(options, updates->count), y);
    base_free(chosen);
}

const struct train_aggregator train_aggregator_bulyan = {
    .name = "bulyan",
    .help = "krum's choice, then of every coordinate what is nearest to its median",
    .distances = true,
    .options = train_aggregator_f,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){0},
    .examples = (const char *const[]){"", "f=1", NULL},
    .weigh = bulyan_weigh,
    .combine = bulyan_combine,
    .tolerates = bulyan_tolerates,
};
