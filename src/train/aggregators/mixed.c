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
    const char *name; /* of the rule, with its own options after slashes */
    int64_t f;
    struct train_aggregation rule; /* not in the table: what `name` stands for */
};

static base_status mixed_open(void *options)
{
    base_status st = BASE_OK;
    struct options *o = options;
    char *text = base_options_unnest(o->name);

    TRY(train_aggregation_find(text, &o->rule));
    if (o->rule.rule->open == mixed_open)
        TRY(base_fail(BASE_ERR_USAGE, "aggregator mixed cannot be the rule of itself"));
    if (o->rule.rule->judges || o->rule.rule->trusts)
        TRY(base_fail(BASE_ERR_USAGE,
                      "aggregator mixed: rule %s judges the updates of workers one by one, which "
                      "mixed ones are not",
                      o->rule.rule->name));
out:
    base_free(text);
    return st;
}

static void mixed_close(void *options)
{
    train_aggregation_fini(&((struct options *)options)->rule);
}

static int mixed_tolerates(const void *options, int count)
{
    const struct options *o = options;

    return train_aggregator_bound(o->f, train_aggregation_tolerates(&o->rule, count));
}

/* (count, count): row i has the shares of the given updates in the mixed one. */
static double *mixed_shares(const struct options *o, const struct train_updates *updates)
{
    const int count = updates->count, nearest = count - mixed_tolerates(o, count);
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
    const struct train_aggregation *a = &((const struct options *)options)->rule;
    double *of_mixed = base_calloc((size_t)count, sizeof *of_mixed);
    double *shares = mixed_shares(options, updates);
    double *distances = mixed_distances(updates->distances, shares, count);

    for (int i = 0; i < count && a->rule->weigh == NULL; i++)
        of_mixed[i] = train_row_weight(&updates->rows[i]);
    if (a->rule->weigh != NULL) /* which finds zeros, as in train_aggregate */
        a->rule->weigh(a->options, &(struct train_updates){updates->rows, count, distances, NULL},
                       of_mixed);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            weights[k] += a->rule->combine != NULL ? (i == k) * of_mixed[i]
                                                   : of_mixed[i] * shares[i * count + k];
    base_free(distances);
    base_free(shares);
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
    const struct train_aggregation *a = &((const struct options *)options)->rule;
    struct train_row *rows;
    float *block;
    double *shares;

    if (a->rule->combine == NULL) {
        train_rows_sum(updates, weights, floats, y);
        return;
    }
    rows = base_calloc(count, sizeof *rows);
    block = base_calloc(count * COLUMNS, sizeof *block);
    shares = mixed_shares(options, updates);
    for (size_t i = 0; i < count; i++) {
        rows[i] = updates->rows[i];
        rows[i].values = block + i * COLUMNS;
    }
    for (size_t at = 0; at < floats; at += COLUMNS) {
        size_t columns = floats - at < COLUMNS ? floats - at : COLUMNS;

        mixed_block(updates, shares, at, columns, block);
        a->rule->combine(a->options, &(struct train_updates){rows, updates->count, NULL, NULL},
                         weights, columns, y + at);
    }
    base_free(shares);
    base_free(block);
    base_free(rows);
}

static const struct base_option table[] = {
    {.name = "rule",
     .argument = "NAME[/O=V]",
     .kind = BASE_TEXT,
     .offset = offsetof(struct options, name),
     .registry = train_aggregator_registry,
     .help = "the aggregator of the mixed updates"},
    {.table = train_aggregator_f, .offset = offsetof(struct options, f)},
    {0},
};

const struct train_aggregator train_aggregator_mixed = {
    .name = "mixed",
    .help = "each update with its nearest neighbours, then another rule",
    .distances = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.name = "trimmed-mean"},
    .examples = (const char *const[]){"", "rule=centered-clipping,f=3", "rule=krum/f=2",
                                      "rule=bulyan", "rule=trimmed-mean/share=0.4,f=2", NULL},
    .open = mixed_open,
    .close = mixed_close,
    .weigh = mixed_weigh,
    .combine = mixed_combine,
    .tolerates = mixed_tolerates,
};
