/* SPDX-License-Identifier: MIT
 *
 * The mean while updates look alike, and a robust rule in rounds in which they do not. Honest
 * updates of samples that were dealt at random are all about as far from each other: a row whose
 * typical distance from the others is far above or below the usual one is suspect, and so are two
 * that are nearly the same. A worker that stays within these bounds moves the mean by as little as
 * an honest one can. Otherwise updates are mixed with their nearest neighbours, all but as many as
 * there are suspects, and then clipped (train/mixing.h, centered-clipping.c): no update is thrown
 * out, because where workers have different data honest ones are suspect, too.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "train/mixing.h"

struct options {
    double spread;
    struct train_aggregation rule; /* not in the table: of the mixed updates */
};

static const double TWINS = 0.25; /* of the usual squared distance: these two are nearly the same */

static base_status auto_open(void *options)
{
    return train_aggregation_find("centered-clipping", &((struct options *)options)->rule);
}

static void auto_close(void *options)
{
    train_aggregation_fini(&((struct options *)options)->rule);
}

static int auto_tolerates(const void *options, int count)
{
    return train_aggregation_tolerates(&((const struct options *)options)->rule, count);
}

static int auto_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median squared distance of each row from the others into `typical`; returns the median of
 * these. */
static double auto_typical(const struct train_updates *updates, double *typical)
{
    const int count = updates->count;
    double *sorted = base_calloc((size_t)count, sizeof *sorted), usual;

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++)
            sorted[j] = updates->distances[i * count + j];
        qsort(sorted, (size_t)count, sizeof *sorted, auto_ascending);
        typical[i] = sorted[count / 2]; /* the first is its own, 0 */
    }
    for (int i = 0; i < count; i++)
        sorted[i] = typical[i];
    qsort(sorted, (size_t)count, sizeof *sorted, auto_ascending);
    usual = sorted[count / 2];
    base_free(sorted);
    return usual;
}

static bool auto_has_twin(const struct train_updates *updates, int row, double usual)
{
    for (int i = 0; i < updates->count; i++)
        if (i != row && updates->distances[row * updates->count + i] < TWINS * usual)
            return true;
    return false;
}

static char *auto_suspect(const void *options, const struct train_updates *updates,
                          struct train_row *rows)
{
    const double spread = ((const struct options *)options)->spread;
    double *typical = base_calloc((size_t)updates->count, sizeof *typical);
    const double usual = auto_typical(updates, typical);
    struct base_str text = {0};
    int suspects = 0;

    for (int i = 0; i < updates->count; i++) {
        bool twin = auto_has_twin(updates, i, usual);

        rows[i].suspect =
            twin || typical[i] > spread * spread * usual || typical[i] * spread * spread < usual;
        if (!rows[i].suspect)
            continue;
        base_str_add(&text, "%sworker %" PRIu32 "'s is ",
                     suspects++ > 0 ? ", " : "updates are unlike: ", rows[i].worker);
        if (twin)
            base_str_add(&text, "nearly that of another worker");
        else
            base_str_add(&text, "%.3g times as far from the others as usual",
                         sqrt(typical[i] / usual));
    }
    if (suspects > 0)
        base_str_add(&text, "; they are mixed and clipped");
    base_free(typical);
    return text.text;
}

static void auto_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    const int count = updates->count;
    double *shares;
    int suspects = 0;

    for (int i = 0; i < count; i++) {
        weights[i] = train_row_weight(&updates->rows[i]);
        suspects += updates->rows[i].suspect;
    }
    if (suspects == 0)
        return;
    for (int i = 0; i < count; i++)
        weights[i] = 0;
    shares = train_mixing_shares(
        updates->distances, count,
        count - train_aggregator_bound(suspects, auto_tolerates(options, count)));
    train_mixing_weigh(&((const struct options *)options)->rule, updates, shares, weights);
    base_free(shares);
}

static const struct base_option table[] = {
    {.name = "spread",
     .argument = "X",
     .kind = BASE_REAL,
     .offset = offsetof(struct options, spread),
     .min = 1,
     .max = 1e6,
     .help = "an update that is so many times as far from the others as usual, or as near, is "
             "suspect"},
    {0},
};

const struct train_aggregator train_aggregator_auto = {
    .name = "auto",
    .help = "the mean while updates look alike; where not, mixed and clipped ones",
    .distances = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.spread = 1.5},
    .examples = (const char *const[]){"", "spread=2", NULL},
    .open = auto_open,
    .close = auto_close,
    .suspect = auto_suspect,
    .weigh = auto_weigh,
    .tolerates = auto_tolerates,
};
