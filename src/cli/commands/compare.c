/* SPDX-License-Identifier: MIT
 *
 * paceline compare RUN RUN …: finished runs side by side, against the first of them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/compared.h"
#include "cli/damage.h"
#include "train/run.h"

/* --sort takes a figure or a setting that differs. */
static base_status cmd_compare_sort(json_t *list, const json_t *keys, const char *by)
{
    base_status st = BASE_OK;
    size_t columns = 0, count = 0, index;
    const char **names;
    json_t *r, *key;
    bool known = false;

    while (cli_compared_column(columns) != NULL)
        columns++;
    names = base_calloc(2 + columns + json_array_size(keys), sizeof *names);
    names[count++] = "name";
    names[count++] = "strategy";
    for (size_t c = 0; c < columns; c++)
        names[count++] = cli_compared_column(c);
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
    bool damage;
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

static void cmd_compare_print_table(const json_t *list, const json_t *keys, bool damage)
{
    struct report_table table = damage ? cli_damage_table(list) : cli_compared_table(list, keys);

    cli_table(stdout, table.cells, table.rows, table.columns);
    base_free(table.cells);
}

static base_status cmd_compare(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct train_run runs[BASE_MAX_TEXTS] = {0};
    json_t *list = NULL, *keys = NULL, *object = NULL;

    for (int i = 0; i < positional->count; i++)
        TRY(cmd_compare_read_run(&a->common, positional->at[i], &runs[i]));
    if (a->damage && a->sort != NULL)
        TRY(base_fail(BASE_ERR_USAGE, "--damage compares with the first run, and does not --sort"));
    list = a->damage ? cli_damage(runs, positional->count)
                     : cli_compared(runs, positional->count, &keys);
    if (a->sort != NULL)
        TRY(cmd_compare_sort(list, keys, a->sort));
    object = json_pack("{s:i, s:O}", "schema", 1, "runs", list);
    if (a->common.json)
        TRY(base_json_print(object));
    else
        cmd_compare_print_table(list, keys, a->damage);
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
    {.name = "damage", .kind = BASE_FLAG, .offset = AT(damage),
     .help = "what attacks did and what defences cost, against the first run, a clean one", .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_compare = {
    .name = "compare",
    .help = "finished runs side by side: settings that differ, speed-up, bytes, losses, accuracy",
    .usage = "paceline compare RUN RUN … [options]",
    .examples = "  paceline compare one-worker two-workers\n"
                "  paceline compare lr-1 lr-2 lr-3 --sort validation_loss\n"
                "  paceline compare clean attacked defended --damage\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}},
    .min_positional = 1,
    .max_positional = BASE_MAX_TEXTS,
    .run = cmd_compare,
};
