/* SPDX-License-Identifier: MIT
 *
 * paceline runs: the runs in a folder, a line each, newest last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "train/run.h"

static json_t *look_up(const json_t *object, const char *a, const char *b)
{
    return json_object_get(json_object_get(object, a), b);
}

/* What one line needs, out of a run.json. */
static json_t *summary(const struct train_run *run)
{
    const json_t *settings = look_up(run->json, "about", "settings");
    const json_t *result = json_object_get(run->json, "result");

    return json_pack("{s:s, s:s, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?}", "name", run->name,
                     "status", train_run_status(run), "created",
                     json_object_get(run->json, "created"), "model",
                     json_object_get(settings, "model"), "data", json_object_get(settings, "data"),
                     "steps", json_object_get(result, "steps"), "train_loss",
                     look_up(result, "train", "loss"), "test_loss", look_up(result, "test", "loss"),
                     "test_accuracy", look_up(result, "test", "accuracy"));
}

static int by_created(const void *a, const void *b)
{
    const char *x = json_string_value(json_object_get(*(json_t *const *)a, "created"));
    const char *y = json_string_value(json_object_get(*(json_t *const *)b, "created"));

    return strcmp(x != NULL ? x : "", y != NULL ? y : "");
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "-";
}

static void print_line(const json_t *s)
{
    const json_t *accuracy = json_object_get(s, "test_accuracy");

    printf("%-32s %-11s %8lld  ", text_of(s, "name"), text_of(s, "status"),
           json_integer_value(json_object_get(s, "steps")));
    if (json_is_number(accuracy))
        printf("%8.2f %%  ", 100 * json_number_value(accuracy));
    else
        printf("%10s  ", "-");
    printf("%-20s %s on %s\n", text_of(s, "created"), text_of(s, "model"), text_of(s, "data"));
}

static base_status run(void *args, const struct cli_positional *positional)
{
    const struct cli_runs_args *a = args;
    char **names = NULL;
    size_t count = 0, found = 0;
    json_t **list = NULL, *array = json_array();
    base_status st = BASE_OK;

    (void)positional;
    if (base_is_dir(a->runs_dir))
        TRY(base_list_dir(a->runs_dir, &names, &count));
    list = base_calloc(count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct train_run run;

        if (train_run_open(a->runs_dir, names[i], &run) == BASE_OK)
            list[found++] = summary(&run);
        else
            base_warn("%s is left out: %s", names[i], base_message());
        train_run_close(&run);
    }
    qsort(list, found, sizeof *list, by_created);
    if (found == 0)
        base_info("no runs in %s", a->runs_dir);
    else if (!a->json)
        printf("%-32s %-11s %8s  %10s  %-20s %s\n", "run", "status", "steps", "accuracy", "created",
               "what");
    for (size_t i = 0; i < found; i++) {
        if (!a->json)
            print_line(list[i]);
        json_array_append_new(array, list[i]);
    }
    if (a->json) {
        json_t *object = json_pack("{s:i, s:O}", "schema", 1, "runs", array);

        st = base_json_print(object);
        json_decref(object);
    }
out:
    base_free(list);
    base_names_free(names, count);
    json_decref(array);
    return st;
}

const struct cli_command cli_command_runs = {
    .name = "runs",
    .help = "list the runs",
    .usage = "paceline runs [options]",
    .examples = "  paceline runs\n  paceline runs --json | jq '.runs[-1]'\n",
    .options = cli_runs_options,
    .args_size = sizeof(struct cli_runs_args),
    .defaults = &cli_runs_defaults,
    .run = run,
};
