/* SPDX-License-Identifier: MIT
 *
 * Nearest-neighbour mixing (train/mixing.h) before another rule: every update is replaced by the
 * mean of the n - f that are nearest to it. Of rules that weigh, the weights are turned into those
 * of the given updates; rules that go by coordinates see mixed values, a few at a time.
 */
#include <string.h>

#include "base/mem.h"
#include "train/mixing.h"

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
    if (o->rule.rule->judges || o->rule.rule->trusts || o->rule.rule->believes)
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

static double *mixed_shares(const void *options, const struct train_updates *updates)
{
    const int count = updates->count;

    return train_mixing_shares(updates->distances, count, count - mixed_tolerates(options, count));
}

static void mixed_weigh(const void *options, const struct train_updates *updates, double *weights)
{
    double *shares = mixed_shares(options, updates);

    train_mixing_weigh(&((const struct options *)options)->rule, updates, shares, weights);
    base_free(shares);
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
        a->rule->combine(a->options, &(struct train_updates){.rows = rows, .count = updates->count},
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
