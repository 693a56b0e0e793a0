/* SPDX-License-Identifier: MIT */
#include "cli/compared.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "train/job.h"
#include "train/task.h"

static double number(const json_t *object, const char *a, const char *b)
{
    const json_t *value = json_object_get(object, a);

    return json_number_value(b != NULL ? json_object_get(value, b) : value);
}

static double sum_ranks(const json_t *result, const char *key)
{
    double sum = 0;
    size_t index;
    json_t *rank;

    json_array_foreach(json_object_get(result, "ranks"), index, rank)
    {
        sum += number(rank, key, NULL);
    }
    return sum;
}

/* The best validation loss of a run; NAN without a validation part. */
static double best_validation(const json_t *run)
{
    double best = NAN;
    size_t index;
    json_t *epoch;

    json_array_foreach(json_object_get(run, "epochs"), index, epoch)
    {
        const json_t *loss = json_object_get(epoch, "validation_loss");

        if (json_is_number(loss))
            best = fmin(best, json_number_value(loss)); /* fmin of NAN and a number is the number */
    }
    return best;
}

/* A figure of the test; null if the run was not tested or has other figures. A new reference. */
static json_t *figure(const json_t *result, const char *part, const char *key)
{
    json_t *value = json_object_get(json_object_get(result, part), key);

    return json_is_number(value) ? json_incref(value) : json_null();
}

/* How many processes of the last view have each role: {"worker": 4, "server": 2}. */
static json_t *roles(const json_t *result)
{
    json_t *counts = json_object(), *rank, *role;
    size_t i, j;

    json_array_foreach(json_object_get(result, "ranks"), i, rank)
        json_array_foreach(json_object_get(rank, "roles"), j, role)
    {
        const char *name = json_string_value(role);

        json_object_set_new(counts, name,
                            json_integer(1 + json_integer_value(json_object_get(counts, name))));
    }
    return counts;
}

/* The mean of the histogram "staleness" of the strategy's figures; NAN without one. */
static double staleness(const json_t *result)
{
    double sum = 0, count = 0;
    size_t age;
    json_t *value;

    json_array_foreach(json_object_get(json_object_get(result, "figures"), "staleness"), age, value)
    {
        sum += (double)age * json_number_value(value);
        count += json_number_value(value);
    }
    return sum / count;
}

/* One run's figures. Speed-up and efficiency are relative to `first`, which may be the same run. */
static json_t *figures(const struct train_run *run, const json_t *first)
{
    const json_t *result = json_object_get(run->json, "result");
    double rate = number(result, "samples_per_second", NULL);
    double speedup = rate / number(first, "samples_per_second", NULL);
    double workers = number(result, "workers", NULL) / number(first, "workers", NULL);
    double total = sum_ranks(result, "total");
    double idle = (sum_ranks(result, "communicate") + sum_ranks(result, "wait")) / total;

    return json_pack(
        "{s:s, s:O?, s:O?, s:O?, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:O?}",
        "name", run->name, "strategy", json_object_get(result, "strategy"), "workers",
        json_object_get(result, "workers"), "batch", json_object_get(result, "batch"),
        "step_seconds", base_json_number(number(result, "step_seconds", "median")),
        "samples_per_second", base_json_number(rate), "speedup", base_json_number(speedup),
        "efficiency", base_json_number(speedup / workers), "idle", base_json_number(idle),
        "bytes_sent", (json_int_t)sum_ranks(result, "bytes_sent"), "loss",
        figure(result, "train", "loss"), "validation_loss",
        base_json_number(best_validation(run->json)), "test_loss", figure(result, "test", "loss"),
        "accuracy", figure(result, "test", "accuracy"), "r2", figure(result, "test", "r2"), "rmse",
        figure(result, "test", "rmse"), "backdoor", figure(result, "backdoor", "success"),
        "staleness", base_json_number(staleness(result)), "reissued",
        figure(result, "figures", "reissued"), "late_results",
        figure(result, "figures", "late_results"), "roles", roles(result), "figures",
        json_object_get(result, "figures"));
}

/* ---- settings that differ ---- */

static const json_t *settings_of(const struct train_run *run)
{
    return json_object_get(json_object_get(run->json, "about"), "settings");
}

/* A run's value of a setting; NULL: the run's task has no use for it, whatever its default is. */
static json_t *setting_of(const struct train_run *run, const char *key)
{
    const char *model = json_string_value(json_object_get(settings_of(run), "model"));
    enum train_use use = train_job_use(key);

    if (use != TRAIN_USE_ANY && (train_task_of(model)->uses & use) == 0)
        return NULL;
    return json_object_get(settings_of(run), key);
}

/* True if the setting differs between those of these runs that use it. Settings that every table
 * shows do not count. */
static bool differs(const struct train_run *runs, int count, const char *key)
{
    static const char *const shown[] = {"strategy", "batch", "batch-per-worker"};
    const json_t *first = NULL;

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (strcmp(key, shown[i]) == 0)
            return false;
    for (int i = 0; i < count; i++) {
        const json_t *other = setting_of(&runs[i], key);

        if (first != NULL && other != NULL && !json_equal(other, first))
            return true;
        first = first != NULL ? first : other;
    }
    return false;
}

/* The names of the settings that differ, in the order of the option table. */
static json_t *differing(const struct train_run *runs, int count)
{
    json_t *keys = json_array();
    struct base_option row;

    for (size_t i = 0; base_option_at(train_job_options, i, &row); i++)
        if (differs(runs, count, row.name))
            json_array_append_new(keys, json_string(row.name));
    return keys;
}

/* A run's values of these settings. */
static json_t *chosen(const struct train_run *run, const json_t *keys)
{
    json_t *object = json_object();
    size_t index;
    json_t *key;

    json_array_foreach(keys, index, key)
    {
        const char *name = json_string_value(key);
        json_t *value = setting_of(run, name);

        json_object_set_new(object, name, value != NULL ? json_incref(value) : json_null());
    }
    return object;
}

/* ---- the table ---- */

static const struct column {
    const char *title, *key;
    int decimals;
    double scale;
    const char *unit;
} columns[] = {
    {"workers", "workers", 0, 1, ""},
    {"batch", "batch", 0, 1, ""},
    {"s/step", "step_seconds", 4, 1, ""},
    {"speed-up", "speedup", 2, 1, "x"},
    {"efficiency", "efficiency", 0, 100, " %"},
    {"idle", "idle", 0, 100, " %"},
    {"MB sent", "bytes_sent", 1, 1e-6, ""},
    {"staleness", "staleness", 2, 1, ""},
    {"reissued", "reissued", 0, 1, ""},
    {"late", "late_results", 0, 1, ""},
    {"loss", "loss", 4, 1, ""},
    {"validation", "validation_loss", 4, 1, ""},
    {"test loss", "test_loss", 4, 1, ""},
    {"accuracy", "accuracy", 2, 100, " %"},
    {"backdoor", "backdoor", 2, 100, " %"},
    {"R²", "r2", 4, 1, ""},
    {"RMSE", "rmse", 4, 1, ""},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static char *figure_text(const json_t *r, const struct column *c)
{
    const json_t *value = json_object_get(r, c->key);

    if (!json_is_number(value))
        return base_strdup("-");
    return base_format("%.*f%s", c->decimals, json_number_value(value) * c->scale, c->unit);
}

static char *setting_text(const json_t *value)
{
    if (json_is_string(value))
        return base_strdup(json_string_value(value));
    if (json_is_boolean(value))
        return base_strdup(json_is_true(value) ? "on" : "off");
    if (json_is_number(value))
        return base_format("%g", json_number_value(value));
    return base_strdup("-");
}

static bool has_figure(const json_t *list, const char *key)
{
    size_t index;
    json_t *r;

    json_array_foreach(list, index, r)
    {
        if (json_is_number(json_object_get(r, key)))
            return true;
    }
    return false;
}

/* Runs that predict classes have an accuracy, those that predict numbers an R² and an RMSE, those
 * of ratings an RMSE and no loss but of tests. */
static bool is_shown(const json_t *list, const struct column *column)
{
    static const char *const rare[] = {"backdoor",  "r2",       "rmse",
                                       "staleness", "reissued", "late_results"};

    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        if (strcmp(column->key, rare[i]) == 0)
            return has_figure(list, rare[i]);
    return strcmp(column->key, "accuracy") != 0 || has_figure(list, "accuracy") ||
           !has_figure(list, "rmse");
}

struct report_table cli_compared_table(const json_t *list, const json_t *keys)
{
    size_t most = 2 + json_array_size(keys) + COLUMNS, width, index, k, at = 0;
    char **cells = base_calloc((json_array_size(list) + 1) * most, sizeof *cells);
    json_t *r, *key;

    cells[at++] = base_strdup("run");
    json_array_foreach(keys, k, key)
    {
        cells[at++] = base_strdup(json_string_value(key));
    }
    cells[at++] = base_strdup("strategy");
    for (size_t c = 0; c < COLUMNS; c++)
        if (is_shown(list, &columns[c]))
            cells[at++] = base_strdup(columns[c].title);
    width = at;
    json_array_foreach(list, index, r)
    {
        const json_t *values = json_object_get(r, "settings");

        cells[at++] = base_strdup(json_string_value(json_object_get(r, "name")));
        json_array_foreach(keys, k, key)
        {
            cells[at++] = setting_text(json_object_get(values, json_string_value(key)));
        }
        cells[at++] = setting_text(json_object_get(r, "strategy"));
        for (size_t c = 0; c < COLUMNS; c++)
            if (is_shown(list, &columns[c]))
                cells[at++] = figure_text(r, &columns[c]);
    }
    return (struct report_table){cells, json_array_size(list) + 1, width};
}

const char *cli_compared_column(size_t index)
{
    return index < COLUMNS ? columns[index].key : NULL;
}

json_t *cli_compared(const struct train_run *runs, int count, json_t **keys_p)
{
    json_t *list = json_array();

    *keys_p = differing(runs, count);
    for (int i = 0; i < count; i++) {
        json_t *row = figures(&runs[i], json_object_get(runs[0].json, "result"));

        json_object_set_new(row, "settings", chosen(&runs[i], *keys_p));
        json_array_append_new(list, row);
    }
    return list;
}
