/* SPDX-License-Identifier: MIT
 *
 * Nearest-neighbour mixing (Allouah et al., AISTATS 2023) before another rule: every update is
 * replaced by the mean of the n - f that are nearest to it, itself among them. Honest updates come
 * closer together, above all where workers have different data, and the rule after it can tell the
 * others apart. The mixture is a matrix: rules that weigh see distances between mixed updates, and
 * their weights are turned into weights of the given ones; rules that go by coordinates see mixed
 * values, a few at a time.
 */
#include <string.h>

#include "base/mem.h"
#include "train/distances.h"

enum { COLUMNS = 1024 };

struct options {
    const char *rule; /* its own options after slashes */
    int64_t f;
};

struct rule {
    const struct train_aggregator *aggregator;
    void *options;
};

static base_status mixed_find(const struct options *o, struct rule *rule)
{
    char *text = base_strdup(o->rule);
    base_status st;

    for (char *at = text, mark = ':'; (at = strchr(at, '/')) != NULL; mark = ',')
        *at = mark;
    st = train_aggregator_find(text, &rule->aggregator, &rule->options);
    base_free(text);
    return st;
}

static base_status mixed_check(const void *options)
{
    base_status st = BASE_OK;
    struct rule rule = {0};

    if (strncmp(((const struct options *)options)->rule, "mixed", strlen("mixed")) == 0)
        return base_fail(BASE_ERR_USAGE, "aggregator mixed cannot be the rule of itself");
    TRY(mixed_find(options, &rule));
    if (rule.aggregator->judges)
        st = base_fail(BASE_ERR_USAGE,
                       "aggregator mixed: rule %s judges the updates of workers one by one, which "
                       "mixed ones are not",
                       rule.aggregator->name);
out:
    base_free(rule.options);
    return st;
}

/* As many as the rule can stand; fewer if f says so. */
static int mixed_tolerates_of(const struct options *o, const struct rule *rule, int count)
{
    int most =
        rule->aggregator->tolerates != NULL ? rule->aggregator->tolerates(rule->options, count) : 0;

    return o->f > 0 && o->f < most ? (int)o->f : most;
}

static int mixed_tolerates(const void *options, int count)
{
    struct rule rule = {0};
    int most =
        mixed_find(options, &rule) == BASE_OK ? mixed_tolerates_of(options, &rule, count) : 0;

    base_free(rule.options);
    return most;
}

/* (count, count): row i has the shares of the given updates in the mixed one. */
static double *mixed_shares(const struct options *o, const struct rule *rule,
                            const struct train_updates *updates)
{
    const int count = updates->count, nearest = count - mixed_tolerates_of(o, rule, count);
    double *shares = base_calloc((size_t)count * (size_t)count, sizeof *shares);
    int *order = base_calloc((size_t)count, sizeof *order);

    for (int i = 0; i < count; i++) {
        train_distances_order(updates->distances, count, i, order);
        for (int k = 0; k < nearest; k++)
            shares[i * count + order[k]] = 1.0 / nearest;
    }
    base_free(order);
    return shares;
}

/* Squared distances of the mixed updates: -½ Σ_kl c_k c_l d_kl with c the difference of their
 * shares, which sums to zero. */
static double *mixed_distances(const double *d, const double *shares, int count)
{
    double *mixed = base_calloc((size_t)count * (size_t)count, sizeof *mixed);

    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            double sum = 0;

            for (int k = 0; k < count; k++) {
                double c = shares[i * count + k] - shares[j * count + k];

                for (int l = 0; l < count && c != 0; l++)
                    sum += c * (shares[i * count + l] - shares[j * count + l]) * d[k * count + l];
            }
            mixed[i * count + j] = mixed[j * count + i] = sum < 0 ? -sum / 2 : 0;
        }
    return mixed;
}

/* Weights of the mixed updates where the rule goes by coordinates; otherwise of the given ones. */
static void mixed_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    const int count = updates->count;
    struct rule rule = {0};
    double *of_mixed = base_calloc((size_t)count, sizeof *of_mixed), *shares, *distances;

    if (mixed_find(options, &rule) != BASE_OK)
        goto out;
    shares = mixed_shares(options, &rule, updates);
    distances = mixed_distances(updates->distances, shares, count);
    for (int i = 0; i < count && rule.aggregator->weigh == NULL; i++)
        of_mixed[i] = train_row_weight(&updates->rows[i]);
    if (rule.aggregator->weigh != NULL) /* which finds zeros, as in train_aggregate */
        rule.aggregator->weigh(rule.options,
                               &(struct train_updates){updates->rows, count, distances}, of_mixed);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            weights[k] += rule.aggregator->combine != NULL ? (i == k) * of_mixed[i]
                                                           : of_mixed[i] * shares[i * count + k];
    base_free(distances);
    base_free(shares);
out:
    base_free(rule.options);
    base_free(of_mixed);
}

/* The mixed values of columns [at, at + columns), row i at block + i * COLUMNS. */
static void mixed_block(const struct train_updates *updates, const double *shares, size_t at,
                        size_t columns, float *block)
{
    memset(block, 0, (size_t)updates->count * COLUMNS * sizeof *block);
    for (int i = 0; i < updates->count; i++)
        for (int k = 0; k < updates->count; k++) {
            const float share = (float)shares[i * updates->count + k];
            const float *values = updates->rows[k].values + at;

            for (size_t c = 0; share > 0 && c < columns; c++)
                block[(size_t)i * COLUMNS + c] += share * values[c];
        }
}

static void mixed_combine(const void *options, const struct train_updates *updates,
                          const float *weights, size_t floats, float *y)
{
    const size_t count = (size_t)updates->count;
    struct rule rule = {0};
    struct train_row *rows = base_calloc(count, sizeof *rows);
    float *block = base_calloc(count * COLUMNS, sizeof *block);
    double *shares = NULL;

    if (mixed_find(options, &rule) != BASE_OK || rule.aggregator->combine == NULL) {
        train_rows_sum(updates, weights, floats, y);
        goto out;
    }
    shares = mixed_shares(options, &rule, updates);
    for (size_t i = 0; i < count; i++) {
        rows[i] = updates->rows[i];
        rows[i].values = block + i * COLUMNS;
    }
    for (size_t at = 0; at < floats; at += COLUMNS) {
        size_t columns = floats - at < COLUMNS ? floats - at : COLUMNS;

        mixed_block(updates, shares, at, columns, block);
        rule.aggregator->combine(rule.options, &(struct train_updates){rows, updates->count, NULL},
                                 weights, columns, y + at);
    }
out:
    base_free(shares);
    base_free(block);
    base_free(rows);
    base_free(rule.options);
}

static const char *const most[] = {"most", NULL};

static const struct base_option table[] = {
    {.name = "rule",
     .argument = "NAME[/O=V]",
     .kind = BASE_TEXT,
     .offset = offsetof(struct options, rule),
     .registry = train_aggregator_registry,
     .help = "the aggregator of the mixed updates"},
    {.name = "f",
     .argument = "N",
     .kind = BASE_INT,
     .offset = offsetof(struct options, f),
     .max = 1e6,
     .names = most,
     .help = "workers that may send anything; at most what the rule can stand"},
    {0},
};

const struct train_aggregator train_aggregator_mixed = {
    .name = "mixed",
    .help = "each update with its nearest neighbours, then another rule",
    .distances = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.rule = "trimmed-mean"},
    .examples = (const char *const[]){"", "rule=centered-clipping,f=3", "rule=krum/f=2",
                                      "rule=bulyan", "rule=trimmed-mean/share=0.4,f=2", NULL},
    .check = mixed_check,
    .weigh = mixed_weigh,
    .combine = mixed_combine,
    .tolerates = mixed_tolerates,
};
