/* SPDX-License-Identifier: MIT
 *
 * Bulyan (El Mhamdi et al., ICML 2018): krum's scores choose n - 2f updates; then each coordinate
 * is the mean of the n - 4f values that are nearest to its median. An attack that hides in a few
 * coordinates passes krum and fails here. The paper lets krum choose again after each choice; the
 * last choices are then between two nearest neighbours, by chance. Samples and ages do not count.
 */
#include <math.h>

#include "base/mem.h"
#include "train/distances.h"

struct options {
    int64_t f;
};

static int bulyan_tolerates(const void *options, int count)
{
    int64_t f = ((const struct options *)options)->f;
    int most = count >= 3 ? (count - 3) / 4 : 0;

    return f > 0 && f < most ? (int)f : most;
}

static void bulyan_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    const int count = updates->count, f = bulyan_tolerates(options, count);
    double *scores = base_calloc((size_t)count, sizeof *scores);

    train_krum_scores(updates->distances, count, f + 1, scores);
    for (int i = 0; i < count - 2 * f; i++) {
        int best = train_least(scores, count);

        weights[best] = 1;
        scores[best] = INFINITY;
    }
    base_free(scores);
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

static const char *const most[] = {"most", NULL};

static const struct base_option table[] = {
    {.name = "f",
     .argument = "N",
     .kind = BASE_INT,
     .offset = offsetof(struct options, f),
     .max = 1e6,
     .names = most,
     .help = "workers that may send anything; of n updates at most (n - 3)/4"},
    {0},
};

const struct train_aggregator train_aggregator_bulyan = {
    .name = "bulyan",
    .help = "krum's choice, then of every coordinate what is nearest to its median",
    .distances = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){0},
    .examples = (const char *const[]){"", "f=1", NULL},
    .weigh = bulyan_weigh,
    .combine = bulyan_combine,
    .tolerates = bulyan_tolerates,
};
