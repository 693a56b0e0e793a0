/* SPDX-License-Identifier: MIT
 *
 * paceline compare RUN RUN …: finished runs side by side, against the first of them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "train/job.h"
#include "train/run.h"

static double cmd_compare_number(const json_t *object, const char *a, const char *b)
{
    const json_t *value = json_object_get(object, a);

    return json_number_value(b != NULL ? json_object_get(value, b) : value);
}

static double cmd_compare_sum_ranks(const json_t *result, const char *key)
{
    double sum = 0;
    size_t index;
    json_t *rank;

    json_array_foreach(json_object_get(result, "ranks"), index, rank)
    {
        sum += cmd_compare_number(rank, key, NULL);
    }
    return sum;
}

/* The best validation loss of a run; NAN without a validation part. */
static double cmd_compare_best_validation(const json_t *run)
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
static json_t *cmd_compare_figure(const json_t *result, const char *part, const char *key)
{
    json_t *value = json_object_get(json_object_get(result, part), key);

    return json_is_number(value) ? json_incref(value) : json_null();
}

/* How many processes of the last view have each role: {"worker": 4, "server": 2}. */
static json_t *cmd_compare_roles(const json_t *result)
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
static double cmd_compare_staleness(const json_t *result)
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
static json_t *cmd_compare_figures(const struct train_run *run, const json_t *first)
{
    const json_t *result = json_object_get(run->json, "result");
    double rate = cmd_compare_number(result, "samples_per_second", NULL);
    double speedup = rate / cmd_compare_number(first, "samples_per_second", NULL);
    double workers =
        cmd_compare_number(result, "workers", NULL) / cmd_compare_number(first, "workers", NULL);
    double total = cmd_compare_sum_ranks(result, "total");
    double idle =
        (cmd_compare_sum_ranks(result, "communicate") + cmd_compare_sum_ranks(result, "wait")) /
        total;

    return json_pack(
        "{s:s, s:O?, s:O?, s:O?, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:O?}",
        "name", run->name, "strategy", json_object_get(result, "strategy"), "workers",
        json_object_get(result, "workers"), "batch", json_object_get(result, "batch"),
        "step_seconds", base_json_number(cmd_compare_number(result, "step_seconds", "median")),
        "samples_per_second", base_json_number(rate), "speedup", base_json_number(speedup),
        "efficiency", base_json_number(speedup / workers), "idle", base_json_number(idle),
        "bytes_sent", (json_int_t)cmd_compare_sum_ranks(result, "bytes_sent"), "loss",
        cmd_compare_figure(result, "train", "loss"), "validation_loss",
        base_json_number(cmd_compare_best_validation(run->json)), "test_loss",
        cmd_compare_figure(result, "test", "loss"), "accuracy",
        cmd_compare_figure(result, "test", "accuracy"), "r2",
        cmd_compare_figure(result, "test", "r2"), "rmse",
        cmd_compare_figure(result, "test", "rmse"), "staleness",
        base_json_number(cmd_compare_staleness(result)), "reissued",
        cmd_compare_figure(result, "figures", "reissued"), "late_results",
        cmd_compare_figure(result, "figures", "late_results"), "roles", cmd_compare_roles(result),
        "figures", json_object_get(result, "figures"));
}

/* ---- settings that differ ---- */

static const json_t *cmd_compare_settings_of(const struct train_run *run)
{
    return json_object_get(json_object_get(run->json, "about"), "settings");
}

/* True if the setting differs between these runs. Settings that every table shows do not count. */
static bool cmd_compare_differs(const struct train_run *runs, int count, const char *key)
{
    static const char *const shown[] = {"strategy", "batch", "batch-per-worker"};
    const json_t *first = json_object_get(cmd_compare_settings_of(&runs[0]), key);

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (strcmp(key, shown[i]) == 0)
            return false;
    for (int i = 1; i < count; i++) {
        const json_t *other = json_object_get(cmd_compare_settings_of(&runs[i]), key);

        if (other != first && !json_equal(other, first))
            return true;
    }
    return false;
}

/* The names of the settings that differ, in the order of the option table. */
static json_t *cmd_compare_differing(const struct train_run *runs, int count)
{
    json_t *keys = json_array();
    struct base_option row;

    for (size_t i = 0; base_option_at(train_job_options, i, &row); i++)
        if (cmd_compare_differs(runs, count, row.name))
            json_array_append_new(keys, json_string(row.name));
    return keys;
}

/* A run's values of these settings. */
static json_t *cmd_compare_chosen(const struct train_run *run, const json_t *keys)
{
    json_t *object = json_object();
    size_t index;
    json_t *key;

    json_array_foreach(keys, index, key)
    {
        const char *name = json_string_value(key);
        json_t *value = json_object_get(cmd_compare_settings_of(run), name);

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
    {"R²", "r2", 4, 1, ""},
    {"RMSE", "rmse", 4, 1, ""},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static char *cmd_compare_figure_text(const json_t *r, const struct column *c)
{
    const json_t *value = json_object_get(r, c->key);

    if (!json_is_number(value))
        return base_strdup("-");
    return base_format("%.*f%s", c->decimals, json_number_value(value) * c->scale, c->unit);
}

static char *cmd_compare_setting_text(const json_t *value)
{
    if (json_is_string(value))
        return base_strdup(json_string_value(value));
    if (json_is_boolean(value))
        return base_strdup(json_is_true(value) ? "on" : "off");
    if (json_is_number(value))
        return base_format("%g", json_number_value(value));
    return base_strdup("-");
}

static bool cmd_compare_has_figure(const json_t *list, const char *key)
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
static bool cmd_compare_is_shown(const json_t *list, const struct column *column)
{
    static const char *const rare[] = {"r2", "rmse", "staleness", "reissued", "late_results"};

    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        if (strcmp(column->key, rare[i]) == 0)
            return cmd_compare_has_figure(list, rare[i]);
    return strcmp(column->key, "accuracy") != 0 || cmd_compare_has_figure(list, "accuracy") ||
           !cmd_compare_has_figure(list, "rmse");
}

/* The columns are the name, the settings that differ, the strategy and the figures. */
static void cmd_compare_print_table(const json_t *list, const json_t *keys)
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
        if (cmd_compare_is_shown(list, &columns[c]))
            cells[at++] = base_strdup(columns[c].title);
    width = at;
    json_array_foreach(list, index, r)
    {
        const json_t *values = json_object_get(r, "settings");

        cells[at++] = base_strdup(json_string_value(json_object_get(r, "name")));
        json_array_foreach(keys, k, key)
        {
            cells[at++] = cmd_compare_setting_text(json_object_get(values, json_string_value(key)));
        }
        cells[at++] = cmd_compare_setting_text(json_object_get(r, "strategy"));
        for (size_t c = 0; c < COLUMNS; c++)
            if (cmd_compare_is_shown(list, &columns[c]))
                cells[at++] = cmd_compare_figure_text(r, &columns[c]);
    }
    cli_table(stdout, cells, json_array_size(list) + 1, width);
    base_free(cells);
}

/* --sort takes a figure or a setting that differs. */
static base_status cmd_compare_sort(json_t *list, const json_t *keys, const char *by)
{
    base_status st = BASE_OK;
    const char **names = base_calloc(2 + COLUMNS + json_array_size(keys), sizeof *names);
    size_t count = 0, index;
    json_t *r, *key;
    bool known = false;

    names[count++] = "name";
    names[count++] = "strategy";
    for (size_t c = 0; c < COLUMNS; c++)
        names[count++] = columns[c].key;
    json_array_foreach(keys, index, key)
    {
        names[count++] = json_string_value(key);
    }
    for (size_t i = 0; i < count; i++)
        known |= strcmp(names[i], by) == 0;
    if (!known)
        TRY(base_unknown(BASE_ERR_USAGE, "column", by, names, count));
    json_array_foreach(list, index, r) /* copies the setting to the figures, where cli_sort looks */
    {
        const json_t *value = json_object_get(json_object_get(r, "settings"), by);

        if (value != NULL)
            json_object_set(r, by, (json_t *)(uintptr_t)value);
    }
    cli_sort(list, by);
    json_array_foreach(list, index, r)
    {
        if (json_object_get(json_object_get(r, "settings"), by) != NULL)
            json_object_del(r, by);
    }
out:
    base_free(names);
    return st;
}

struct args {
    struct cli_runs_args common;
    const char *sort;
};

static base_status cmd_compare_read_run(const struct cli_runs_args *a, const char *name,
                                        struct train_run *run_p)
{
    base_status st = BASE_OK;
    json_t *result = NULL;

    TRY(train_run_open(a->runs_dir, name, run_p));
    if (base_json_object(run_p->json, "result", &result) != BASE_OK)
        TRY(base_fail(BASE_ERR_USAGE, "run %s has no result yet (it is %s)", name,
                      train_run_status(run_p)));
out:
    return st;
}

static base_status cmd_compare(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct train_run runs[BASE_MAX_TEXTS] = {0};
    json_t *list = json_array(), *keys = NULL, *object = NULL;

    for (int i = 0; i < positional->count; i++)
        TRY(cmd_compare_read_run(&a->common, positional->at[i], &runs[i]));
    keys = cmd_compare_differing(runs, positional->count);
    for (int i = 0; i < positional->count; i++) {
        json_t *row = cmd_compare_figures(&runs[i], json_object_get(runs[0].json, "result"));

        json_object_set_new(row, "settings", cmd_compare_chosen(&runs[i], keys));
        json_array_append_new(list, row);
    }
    if (a->sort != NULL)
        TRY(cmd_compare_sort(list, keys, a->sort));
    object = json_pack("{s:i, s:O}", "schema", 1, "runs", list);
    if (a->common.json)
        TRY(base_json_print(object));
    else
        cmd_compare_print_table(list, keys);
out:
    for (int i = 0; i < positional->count; i++)
        train_run_close(&runs[i]);
    json_decref(object);
    json_decref(keys);
    json_decref(list);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "sort", .argument = "COLUMN", .kind = BASE_TEXT, .offset = AT(sort),
     .help = "best first by a column: test_loss, accuracy, speedup …, or a setting that differs "
             "[the order given]", .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_compare = {
    .name = "compare",
    .help = "finished runs side by side: settings that differ, speed-up, bytes, losses, accuracy",
    .usage = "paceline compare RUN RUN … [options]",
    .examples = "  paceline compare one-worker two-workers\n"
                "  paceline compare lr-1 lr-2 lr-3 --sort validation_loss\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}},
    .min_positional = 1,
    .max_positional = BASE_MAX_TEXTS,
    .run = cmd_compare,
};
