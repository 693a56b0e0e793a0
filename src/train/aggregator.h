/* SPDX-License-Identifier: MIT
 *
 * What a file in train/aggregators/ provides: `const struct train_aggregator
 * train_aggregator_NAME`. An aggregator makes one update of those of several workers, in two steps,
 * of which it may leave either to the default:
 *
 *   weigh     sees all updates whole and gives each a weight
 *   combine   sees the same slice of all updates and makes that slice of the result
 *
 * A rule that selects or weighs workers (krum, a geometric median) is a `weigh`, one that goes
 * coordinate by coordinate (median) a `combine`. Both depend on their arguments alone, so that the
 * same updates in the same order give the same bits. Updates are finite: the manager refuses
 * others. A rule that compares updates with each other sees only how far apart they are
 * (train/distances.h): sums over slices, which workers without a manager could add up as well.
 */
#ifndef TRAIN_AGGREGATOR_H
#define TRAIN_AGGREGATOR_H

#include "base/option.h"
#include "base/status.h"

/* An update of a worker, and what is known about it. */
struct train_row {
    const float *values; /* of the update, or of a slice of it */
    uint32_t worker;     /* its id */
    int64_t samples;     /* that it was computed from; at least 1 */
    double loss;         /* their mean, by the worker's own word; finite */
    double judged; /* loss with this update on samples of the manager; for a rule that `judges` */
    bool trusted;  /* it is of the worker in the manager's process */
    int64_t age;   /* rounds since the worker got the weights that it began with; 0: this one's */
    bool suspect;  /* a rule that has `suspect` finds it unlike the others */
};

struct train_updates {
    const struct train_row *rows;
    int count;               /* at least 1 */
    const double *distances; /* (count, count): squared, between whole updates; NULL: not wanted */
    const double *squares;   /* (count): squared lengths of whole updates; with distances */
    size_t statistics;       /* so many of the last values are of running statistics */
};

struct train_aggregator {
    const char *name, *help;
    bool judges;    /* wants `judged` of each row */
    bool trusts;    /* counts on a row that is `trusted`: without one there is no update */
    bool distances; /* wants them of the updates, and squares */
    bool believes;  /* goes by `loss`, the worker's own word */

    /* What may follow the name, "trimmed-mean:share=0.3"; as of a strategy. */
    const struct base_option *options;
    size_t options_size;
    const void *defaults;
    const char *const *examples; /* texts of options that tests run; NULL-ended; NULL: "" alone */

    /* Optional: checks the options beyond what their table says, and makes what the rule keeps
     * beside them in their struct. `close` frees that; it accepts a struct that `open` refused. */
    base_status (*open)(void *options);
    void (*close)(void *options);
    /* Optional: marks the rows that look unlike the others, before `weigh`, which may go by that.
     * Returns what is odd about them, for the log, to be freed; NULL: nothing. */
    char *(*suspect)(const void *options, const struct train_updates *updates,
                     struct train_row *rows);
    /* Weights of any positive scale; NULL: by samples, of a late update a part (1/(1 + age)). */
    void (*weigh)(const void *options, const struct train_updates *updates, double *weights);
    /* y[i] of the values [i] of all rows. The weights sum to 1. NULL: the weighted sum. */
    void (*combine)(const void *options, const struct train_updates *updates, const float *weights,
                    size_t floats, float *y);
    /* How many b of n updates of the same samples may be anything while the result stays near the
     * others: within 2(n-b)/(n-2b) times the largest distance of one of these from their mean. A
     * rule that counts updates by samples stands less than half of the samples. NULL: none. */
    int (*tolerates)(const void *options, int count);
};

extern const struct train_aggregator *const train_aggregator_registry[];
extern const size_t train_aggregator_count;

/* What is meant where none is asked for. */
#define TRAIN_AGGREGATOR "average"

/* An aggregator with its options. */
struct train_aggregation {
    const struct train_aggregator *rule;
    void *options;
    bool suspicious;   /* updates looked unlike when it was last used */
    bool silent;       /* the log is another worker's business */
    size_t statistics; /* the last values of updates that are of running statistics; 0: none */
};

/* "NAME" or "NAME:option=value,…". */
base_status train_aggregation_find(const char *text, struct train_aggregation *aggregation_p);
void train_aggregation_fini(struct train_aggregation *aggregation); /* accepts zeros */

/* How many of `count` updates may be anything; 0: none, or the rule promises nothing. */
int train_aggregation_tolerates(const struct train_aggregation *aggregation, int count);

/* Says so in the log: a rule that stands so many wrong updates may stand none of as few as a view
 * has. */
void train_aggregation_say(const struct train_aggregation *aggregation, int updates);

/* y (floats) becomes the one update of the rows; at least one. `weights` (count) gets what each row
 * counted for; NULL: not asked. The log tells when suspicion arises and when it is gone. For a rule
 * that `trusts` y is zeros where no row is trusted, and the log says so. Fails where no row has a
 * weight. */
base_status train_aggregate(struct train_aggregation *aggregation, struct train_row *rows,
                            int count, size_t floats, float *y, float *weights);

/* The same in two parts, for workers that have a slice each (train/robust.h): what each row counts
 * for, by distances between whole updates; then a slice of the update, of the same slice of all
 * rows. Not for a rule that `judges`, `trusts` or `believes`. */
base_status train_aggregate_weigh(struct train_aggregation *aggregation, struct train_row *rows,
                                  const struct train_updates *updates, float *weights);
void train_aggregate_combine(const struct train_aggregation *aggregation,
                             const struct train_updates *updates, const float *weights,
                             size_t floats, float *y);

/* The option `f`, workers that may send anything, of rules that can be told: the `table` of a row
 * whose offset is that of an int64_t, or all the options there are. */
extern const struct base_option train_aggregator_f[];
/* What such a rule stands: f, or where f is 0 or more than that, `most`. */
int train_aggregator_bound(int64_t f, int most);

/* The default of `weigh`: samples, of a late update a part. */
double train_row_weight(const struct train_row *row);

/* For `combine`: the weighted sum. */
void train_rows_sum(const struct train_updates *updates, const float *weights, size_t floats,
                    float *y);
/* For `combine`: the coordinates of all rows in ascending order, and then `take` of the sorted
 * columns; a few of them at a time, so that they stay in the cache. */
typedef void train_take_sorted(int count, const float *const *sorted, size_t floats, float *y,
                               int cut);
void train_rows_sorted(const struct train_updates *updates, size_t floats, train_take_sorted *take,
                       int cut, float *y);

#endif
