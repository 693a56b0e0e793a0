/* SPDX-License-Identifier: MIT
 *
 * paceline compare RUN RUN …: finished runs side by side, against the first of them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "train/run.h"

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

/* One run's figures; speed-up and efficiency are against `first`, which may be the same. */
static json_t *figures(const char *name, const json_t *result, const json_t *first)
{
    double rate = number(result, "samples_per_second", NULL);
    double speedup = rate / number(first, "samples_per_second", NULL);
    double workers = number(result, "workers", NULL) / number(first, "workers", NULL);
    double total = sum_ranks(result, "total");
    double idle = (sum_ranks(result, "communicate") + sum_ranks(result, "wait")) / total;
    json_t *test = json_object_get(result, "test");

    return json_pack(
        "{s:s, s:O?, s:O?, s:O?, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "name", name, "strategy",
        json_object_get(result, "strategy"), "workers", json_object_get(result, "workers"), "batch",
        json_object_get(result, "batch"), "step_seconds",
        base_json_number(number(result, "step_seconds", "median")), "samples_per_second",
        base_json_number(rate), "speedup", base_json_number(speedup), "efficiency",
        base_json_number(speedup / workers), "idle", base_json_number(idle), "bytes_sent",
        (json_int_t)sum_ranks(result, "bytes_sent"), "loss",
        base_json_number(number(result, "train", "loss")), "accuracy",
        json_is_object(test) ? base_json_number(number(test, "accuracy", NULL)) : json_null());
}

/* Of the column that holds the longest of these texts. */
static int width_of(const json_t *list, const char *key, const char *title)
{
    size_t index, longest = strlen(title);
    json_t *r;

    json_array_foreach(list, index, r)
    {
        size_t length = json_string_length(json_object_get(r, key));

        longest = length > longest ? length : longest;
    }
    return (int)longest;
}

static void print_table(const json_t *list)
{
    int name = width_of(list, "name", "run"), strategy = width_of(list, "strategy", "strategy");
    size_t index;
    json_t *r;

    printf("%-*s %-*s %7s %6s %10s %8s %10s %6s %9s %8s %9s\n", name, "run", strategy, "strategy",
           "workers", "batch", "s/step", "speed-up", "efficiency", "idle", "MB sent", "loss",
           "accuracy");
    json_array_foreach(list, index, r)
    {
        const json_t *accuracy = json_object_get(r, "accuracy");
        char shown[16] = "-";

        if (json_is_number(accuracy))
            snprintf(shown, sizeof shown, "%.2f %%", 100 * json_number_value(accuracy));
        printf("%-*s %-*s %7.0f %6.0f %10.4f %7.2fx %8.0f %% %4.0f %% %9.1f %8.4f %9s\n", name,
               json_string_value(json_object_get(r, "name")), strategy,
               json_string_value(json_object_get(r, "strategy")), number(r, "workers", NULL),
               number(r, "batch", NULL), number(r, "step_seconds", NULL),
               number(r, "speedup", NULL), 100 * number(r, "efficiency", NULL),
               100 * number(r, "idle", NULL), number(r, "bytes_sent", NULL) / 1e6,
               number(r, "loss", NULL), shown);
    }
}

static base_status read_run(const struct cli_runs_args *a, const char *name,
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

static base_status run(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct cli_runs_args *a = args;
    struct train_run runs[BASE_MAX_TEXTS] = {0};
    json_t *list = json_array(), *object = NULL;

    for (int i = 0; i < positional->count; i++) {
        TRY(read_run(a, positional->at[i], &runs[i]));
        json_array_append_new(list, figures(runs[i].name, json_object_get(runs[i].json, "result"),
                                            json_object_get(runs[0].json, "result")));
    }
    object = json_pack("{s:i, s:O}", "schema", 1, "runs", list);
    if (a->json)
        TRY(base_json_print(object));
    else
        print_table(list);
out:
    for (int i = 0; i < positional->count; i++)
        train_run_close(&runs[i]);
    json_decref(object);
    json_decref(list);
    return st;
}

const struct cli_command cli_command_compare = {
    .name = "compare",
    .help = "finished runs side by side: time of a step, speed-up, bytes, loss",
    .usage = "paceline compare RUN RUN … [options]",
    .examples = "  paceline compare one-worker two-workers\n",
    .completes = "RUN",
    .options = cli_runs_options,
    .args_size = sizeof(struct cli_runs_args),
    .defaults = &cli_runs_defaults,
    .min_positional = 1,
    .max_positional = BASE_MAX_TEXTS,
    .run = run,
};
