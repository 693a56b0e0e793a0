/* SPDX-License-Identifier: MIT
 *
 * The mean while updates look alike, and a robust rule in rounds in which they do not. Honest
 * updates of samples that were dealt at random are all about as far from each other, and no two of
 * them are nearly the same: such ones count as one. A row whose typical distance from the others is
 * far above or below the usual one is odd; where there is one, updates are mixed with their nearest
 * neighbours, all but as many as are odd, and then clipped (train/mixing.h, centered-clipping.c);
 * those that are nearly the same count each for itself then. None is thrown out, because where
 * workers have different data honest ones are odd, too. What stays within these bounds moves the
 * mean by as little as an honest update.
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

/* `odd`: is a row's typical distance far from the usual one? `twins`: so many rows are nearly the
 * same as this one, itself counted. `typical` (count), room. Returns the usual distance. */
static double auto_look(const struct options *o, const struct train_updates *updates,
                        double *typical, bool *odd, int *twins)
{
    const int count = updates->count;
    const double usual = auto_typical(updates, typical), spread = o->spread * o->spread;

    for (int i = 0; i < count; i++) {
        odd[i] = typical[i] > spread * usual || typical[i] * spread < usual;
        twins[i] = 1;
        for (int j = 0; j < count; j++)
            twins[i] += j != i && updates->distances[i * count + j] < TWINS * usual;
    }
    return usual;
}

static char *auto_suspect(const void *options, const struct train_updates *updates,
                          struct train_row *rows)
{
    const size_t count = (size_t)updates->count;
    double *typical = base_calloc(count, sizeof *typical);
    bool *odd = base_calloc(count, sizeof *odd);
    int *twins = base_calloc(count, sizeof *twins), suspects = 0, wrong = 0;
    const double usual = auto_look(options, updates, typical, odd, twins);
    struct base_str text = {0};

    for (size_t i = 0; i < count; i++) {
        rows[i].suspect = odd[i] || twins[i] > 1;
        if (!rows[i].suspect)
            continue;
        base_str_add(&text, "%sworker %" PRIu32 "'s is ",
                     suspects++ > 0 ? ", " : "updates are unlike: ", rows[i].worker);
        if (odd[i])
            base_str_add(&text, "%.3g times as far from the others as usual",
                         sqrt(typical[i] / usual));
        else
            base_str_add(&text, "nearly that of another worker");
        wrong += odd[i];
    }
    if (suspects > 0)
        base_str_add(&text, wrong > 0 ? "; all are mixed and clipped" : "; these count as one");
    base_free(twins);
    base_free(odd);
    base_free(typical);
    return text.text;
}

static void auto_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    const int count = updates->count;
    double *shares, *typical = base_calloc((size_t)count, sizeof *typical);
    bool *odd = base_calloc((size_t)count, sizeof *odd);
    int *twins = base_calloc((size_t)count, sizeof *twins), wrong = 0;

    auto_look(options, updates, typical, odd, twins);
    for (int i = 0; i < count; i++)
        wrong += odd[i];
    if (wrong == 0) {
        for (int i = 0; i < count; i++)
            weights[i] = train_row_weight(&updates->rows[i]) / twins[i];
    } else {
        wrong = train_aggregator_bound(wrong, auto_tolerates(options, count));
        shares = train_mixing_shares(updates->distances, count, count - wrong);
        train_mixing_weigh(&((const struct options *)options)->rule, updates, shares, weights);
        base_free(shares);
    }
    base_free(twins);
    base_free(odd);
    base_free(typical);
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
    .defaults = &(const struct options){.spread = 1.25},
    .examples = (const char *const[]){"", "spread=2", NULL},
    .open = auto_open,
    .close = auto_close,
    .suspect = auto_suspect,
    .weigh = auto_weigh,
    .tolerates = auto_tolerates,
};
