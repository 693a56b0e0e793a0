/* SPDX-License-Identifier: MIT */
#include "train/aggregator.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "coll/kernels.h"
#include "train/distances.h"

base_status train_aggregation_find(const char *text, struct train_aggregation *a)
{
    base_status st = BASE_OK;
    char *name = base_strndup(text, strcspn(text, ":"));

    *a = (struct train_aggregation){0};
    TRY(base_registry_find("aggregator", name, train_aggregator_registry, train_aggregator_count,
                           &a->rule));
    TRY(base_options_parse(a->rule->options, "aggregator", name, a->rule->defaults,
                           a->rule->options_size, text, &a->options));
    if (a->rule->open != NULL)
        TRY(a->rule->open(a->options));
out:
    if (st != BASE_OK)
        train_aggregation_fini(a);
    base_free(name);
    return st;
}

void train_aggregation_fini(struct train_aggregation *a)
{
    if (a->options != NULL && a->rule->close != NULL)
        a->rule->close(a->options);
    base_free(a->options);
    *a = (struct train_aggregation){0};
}

int train_aggregation_tolerates(const struct train_aggregation *a, int count)
{
    return a->rule->tolerates != NULL ? a->rule->tolerates(a->options, count) : 0;
}

void train_aggregation_say(const struct train_aggregation *a, int updates)
{
    int wrong = train_aggregation_tolerates(a, updates);

    if (wrong > 0)
        base_info("--aggregate %s: %d of %d updates may be anything", a->rule->name, wrong,
                  updates);
    else if (a->rule->tolerates != NULL)
        base_warn("--aggregate %s stands no wrong update of %d; with more workers it would",
                  a->rule->name, updates);
}

const struct base_option train_aggregator_f[] = {
    {.name = "f",
     .argument = "N",
     .kind = BASE_INT,
     .max = 1e6,
     .names = (const char *const[]){"most", NULL},
     .help = "workers that may send anything; at most what the rule can stand"},
    {0},
};

int train_aggregator_bound(int64_t f, int most)
{
    return f > 0 && f < most ? (int)f : most;
}

double train_row_weight(const struct train_row *row)
{
    return (double)row->samples / (double)(1 + row->age);
}

/* Weights that sum to 1. */
static base_status weigh(const struct train_aggregation *a, const struct train_updates *updates,
                         float *weights)
{
    base_status st = BASE_OK;
    double *scale = base_calloc((size_t)updates->count, sizeof *scale), sum = 0;

    for (int i = 0; i < updates->count && a->rule->weigh == NULL; i++)
        scale[i] = train_row_weight(&updates->rows[i]);
    if (a->rule->weigh != NULL)
        a->rule->weigh(a->options, updates, scale);
    for (int i = 0; i < updates->count; i++)
        sum += scale[i];
    if (!isfinite(sum) || sum <= 0)
        TRY(base_fail(BASE_ERR_DIVERGED,
                      "aggregator %s finds a weight for none of %d updates; try a lower --lr",
                      a->rule->name, updates->count));
    for (int i = 0; i < updates->count; i++)
        weights[i] = (float)(scale[i] / sum);
out:
    base_free(scale);
    return st;
}

/* Marks the rows that the rule suspects, and tells when that is news. */
static void look_for_suspects(struct train_aggregation *a, const struct train_updates *updates,
                              struct train_row *rows)
{
    char *why = NULL;

    for (int i = 0; i < updates->count; i++)
        rows[i].suspect = false;
    if (a->rule->suspect != NULL)
        why = a->rule->suspect(a->options, updates, rows);
    if (why != NULL && !a->suspicious && !a->silent)
        base_warn("--aggregate %s: %s", a->rule->name, why);
    if (why == NULL && a->suspicious && !a->silent)
        base_info("--aggregate %s: the updates of all workers look alike again", a->rule->name);
    a->suspicious = why != NULL;
    base_free(why);
}

/* Does the rule want a row that is trusted, and there is none? */
static bool lacks_trust(const struct train_aggregation *a, const struct train_row *rows, int count)
{
    bool lacks = a->rule->trusts;

    for (int i = 0; i < count; i++)
        lacks &= !rows[i].trusted;
    return lacks;
}

base_status train_aggregate_weigh(struct train_aggregation *a, struct train_row *rows,
                                  const struct train_updates *updates, float *weights)
{
    look_for_suspects(a, updates, rows);
    return weigh(a, updates, weights);
}

void train_aggregate_combine(const struct train_aggregation *a, const struct train_updates *updates,
                             const float *weights, size_t floats, float *y)
{
    if (a->rule->combine != NULL)
        a->rule->combine(a->options, updates, weights, floats, y);
    else
        train_rows_sum(updates, weights, floats, y);
}

base_status train_aggregate(struct train_aggregation *a, struct train_row *rows, int count,
                            size_t floats, float *y, float *weights)
{
    base_status st = BASE_OK;
    float *own = base_calloc((size_t)count, sizeof *own);
    double *distances = a->rule->distances ? train_distances_new(rows, count, floats) : NULL;
    double *squares = a->rule->distances ? train_squares_new(rows, count, floats) : NULL;
    const struct train_updates updates = {rows, count, distances, squares, a->statistics};

    if (lacks_trust(a, rows, count)) {
        base_warn("--aggregate %s: this round changes nothing, because the worker beside the "
                  "manager has no update in it",
                  a->rule->name);
        memset(y, 0, floats * sizeof *y);
        if (weights != NULL)
            memset(weights, 0, (size_t)count * sizeof *weights);
        goto out;
    }
    TRY(train_aggregate_weigh(a, rows, &updates, own));
    train_aggregate_combine(a, &updates, own, floats, y);
    if (weights != NULL)
        memcpy(weights, own, (size_t)count * sizeof *own);
out:
    base_free(squares);
    base_free(distances);
    base_free(own);
    return st;
}

void train_rows_sum(const struct train_updates *updates, const float *weights, size_t floats,
                    float *y)
{
    const float **values = base_calloc((size_t)updates->count, sizeof *values);

    for (int i = 0; i < updates->count; i++)
        values[i] = updates->rows[i].values;
    coll_kernels()->sum(floats, updates->count, values, weights, 1, &y, false);
    base_free(values);
}

/* ---- coordinates in order ---- */

enum { COLUMNS = 256 }; /* coordinates at a time: of 32 rows 32 KB */

/* The smaller of each pair into `low`, the larger into `high`. */
static void order_pair(float *restrict low, float *restrict high)
{
    for (int i = 0; i < COLUMNS; i++) {
        float a = low[i], b = high[i];

        low[i] = a < b ? a : b;
        high[i] = a < b ? b : a;
    }
}

/* Batcher's odd-even merge sort (1968): the comparisons do not depend on the values, so that each
 * of them is done for all columns at once. */
static void sort_columns(float *rows, int count)
{
    for (int p = 1; p < count; p *= 2)
        for (int k = p; k >= 1; k /= 2)
            for (int j = k % p; j + k < count; j += 2 * k)
                for (int i = j; i < j + k && i + k < count; i++)
                    if (i / (2 * p) == (i + k) / (2 * p))
                        order_pair(rows + (size_t)i * COLUMNS, rows + (size_t)(i + k) * COLUMNS);
}

void train_rows_sorted(const struct train_updates *updates, size_t floats, train_take_sorted *take,
                       int cut, float *y)
{
    const int count = updates->count;
    float *block = base_calloc((size_t)count * COLUMNS, sizeof *block);
    const float **sorted = base_calloc((size_t)count, sizeof *sorted);

    for (int row = 0; row < count; row++)
        sorted[row] = block + (size_t)row * COLUMNS;
    for (size_t at = 0; at < floats; at += COLUMNS) {
        size_t columns = floats - at < COLUMNS ? floats - at : COLUMNS;

        for (int row = 0; row < count; row++)
            memcpy(block + (size_t)row * COLUMNS, updates->rows[row].values + at,
                   columns * sizeof *block);
        sort_columns(block, count);
        take(count, sorted, columns, y + at, cut);
    }
    base_free(sorted);
    base_free(block);
}
