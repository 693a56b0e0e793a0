/* SPDX-License-Identifier: MIT
 *
 * paceline runs: the runs in a folder, a line each, newest last.
 * paceline runs rm RUN…: removes runs, unless they are being trained.
 */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/cli.h"
#include "train/run.h"

static json_t *cmd_runs_look_up(const json_t *object, const char *a, const char *b)
{
    return json_object_get(json_object_get(object, a), b);
}

/* A figure of the newest epoch that was tested; NULL: none was. */
static json_t *cmd_runs_tested(const json_t *epochs, const char *key)
{
    for (size_t i = json_array_size(epochs); i-- > 0;) {
        json_t *figure = json_object_get(json_array_get(epochs, i), key);

        if (json_is_number(figure))
            return figure;
    }
    return NULL;
}

/* What one line shows, from run.json; for a run that has not ended, from its events. */
static json_t *cmd_runs_summary(const struct train_run *run)
{
    const char *status = train_run_status(run);
    const json_t *settings = cmd_runs_look_up(run->json, "about", "settings");
    const json_t *result = json_object_get(run->json, "result");
    bool ended = strcmp(status, "done") == 0 || strcmp(status, "interrupted") == 0;
    double age;
    json_t *newest = train_run_newest_step(run, &age), *object;
    bool live = !ended && newest != NULL;
    const json_t *epochs = json_object_get(run->json, "epochs");

    object = json_pack(
        "{s:s, s:s, s:O?, s:o, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?}", "name", run->name,
        "status", status, "created", json_object_get(run->json, "created"), "age_seconds",
        base_json_number(age), "model", json_object_get(settings, "model"), "data",
        json_object_get(settings, "data"), "steps",
        json_object_get(live ? newest : result, live ? "step" : "steps"), "train_loss",
        live ? json_object_get(newest, "loss") : cmd_runs_look_up(result, "train", "loss"),
        "test_loss", live ? NULL : cmd_runs_look_up(result, "test", "loss"), "test_accuracy",
        live ? cmd_runs_tested(epochs, "test_accuracy")
             : cmd_runs_look_up(result, "test", "accuracy"),
        "test_r2",
        live ? cmd_runs_tested(epochs, "test_r2") : cmd_runs_look_up(result, "test", "r2"),
        "test_rmse",
        live ? cmd_runs_tested(epochs, "test_rmse") : cmd_runs_look_up(result, "test", "rmse"));
    json_decref(newest);
    return object;
}

static const char *cmd_runs_text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "-";
}

/* "42 s", "7 min", "3 h", "12 d" */
static void cmd_runs_print_age(const json_t *age)
{
    static const struct {
        const char *name;
        double seconds, until;
    } units[] = {{"s", 1, 100}, {"min", 60, 6000}, {"h", 3600, 48 * 3600}, {"d", 86400, INFINITY}};
    double seconds = json_number_value(age);
    size_t i = 0;

    while (seconds >= units[i].until)
        i++;
    printf("%5.0f %-3s", floor(seconds / units[i].seconds), units[i].name);
}

static void cmd_runs_print_line(const json_t *s)
{
    const json_t *loss = json_object_get(s, "train_loss");
    const json_t *accuracy = json_object_get(s, "test_accuracy");
    const json_t *r2 = json_object_get(s, "test_r2"), *rmse = json_object_get(s, "test_rmse");

    printf("%-32s %-11s %8lld ", cmd_runs_text_of(s, "name"), cmd_runs_text_of(s, "status"),
           json_integer_value(json_object_get(s, "steps")));
    if (json_is_number(loss))
        printf("%8.4f ", json_number_value(loss));
    else
        printf("%8s ", "-");
    if (json_is_number(accuracy))
        printf("%8.2f %% ", 100 * json_number_value(accuracy));
    else if (json_is_number(r2))
        printf("R²%8.4f ", json_number_value(r2));
    else if (json_is_number(rmse))
        printf("RMSE%6.4f ", json_number_value(rmse));
    else
        printf("%10s ", "-");
    cmd_runs_print_age(json_object_get(s, "age_seconds"));
    printf("  %-20s %s on %s\n", cmd_runs_text_of(s, "created"), cmd_runs_text_of(s, "model"),
           cmd_runs_text_of(s, "data"));
}

struct args {
    struct cli_runs_args common;
    const char *sort;
};

/* The values of --sort, and the JSON field that each stands for. */
static const char *const sort_names[] = {"created", "age",      "name", "status", "steps",
                                         "loss",    "accuracy", "r2",   "rmse",   NULL};

static const char *cmd_runs_sort_field(const char *name)
{
    if (strcmp(name, "loss") == 0)
        return "train_loss";
    if (strcmp(name, "age") == 0)
        return "age_seconds";
    if (strcmp(name, "r2") == 0)
        return "test_r2";
    if (strcmp(name, "rmse") == 0)
        return "test_rmse";
    return strcmp(name, "accuracy") == 0 ? "test_accuracy" : name;
}

static base_status cmd_runs_find(const char *runs_dir, json_t *list)
{
    base_status st = BASE_OK;
    char **names = NULL;
    size_t count = 0;

    if (base_is_dir(runs_dir))
        TRY(base_list_dir(runs_dir, &names, &count));
    for (size_t i = 0; i < count; i++) {
        struct train_run run;

        if (train_run_open(runs_dir, names[i], &run) == BASE_OK)
            json_array_append_new(list, cmd_runs_summary(&run));
        else
            base_warn("%s is left out: %s", names[i], base_message());
        train_run_close(&run);
    }
out:
    base_names_free(names, count);
    return st;
}

static base_status cmd_runs_show(const struct args *a)
{
    base_status st = BASE_OK;
    json_t *list = json_array(), *object = NULL, *item;
    size_t index;

    TRY(cmd_runs_find(a->common.runs_dir, list));
    cli_sort(list, cmd_runs_sort_field(a->sort));
    if (json_array_size(list) == 0)
        base_info("no runs in %s", a->common.runs_dir);
    if (a->common.json) {
        object = json_pack("{s:i, s:O}", "schema", 1, "runs", list);
        TRY(base_json_print(object));
    } else if (json_array_size(list) > 0) {
        printf("%-32s %-11s %8s %8s %10s %9s  %-20s %s\n", "run", "status", "steps", "loss",
               "accuracy", "age", "created", "what");
        json_array_foreach(list, index, item)
        {
            cmd_runs_print_line(item);
        }
    }
out:
    json_decref(object);
    json_decref(list);
    return st;
}

/* Removes all of them or, if one is not a run or is running, none. The locks keep other processes
 * from resuming them. */
static base_status cmd_runs_remove(const struct args *a, const char *const *names, int count)
{
    base_status st = BASE_OK;
    struct train_run runs[BASE_MAX_TEXTS] = {0};
    json_t *list = json_array(), *object = NULL;

    if (count == 0)
        TRY(base_fail(BASE_ERR_USAGE, "which runs? paceline runs rm RUN … ('paceline runs')"));
    for (int i = 0; i < count; i++) {
        TRY(train_run_open(a->common.runs_dir, names[i], &runs[i]));
        TRY(train_run_lock(&runs[i], 0));
    }
    for (int i = 0; i < count; i++) {
        TRY(base_remove_tree(runs[i].path));
        base_info("removed %s", runs[i].path);
        json_array_append_new(list, json_string(runs[i].path));
    }
    if (a->common.json) {
        object = json_pack("{s:i, s:O}", "schema", 1, "removed", list);
        TRY(base_json_print(object));
    }
out:
    for (int i = 0; i < count; i++)
        train_run_close(&runs[i]);
    json_decref(object);
    json_decref(list);
    return st;
}

static const char *const verbs[] = {"rm", NULL};

static base_status cmd_runs(void *args, const struct cli_positional *positional)
{
    if (positional->count == 0)
        return cmd_runs_show(args);
    if (strcmp(positional->at[0], "rm") != 0)
        return base_unknown(BASE_ERR_USAGE, "verb", positional->at[0], verbs, 1);
    return cmd_runs_remove(args, positional->at + 1, positional->count - 1);
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "sort", .argument = "COLUMN", .kind = BASE_NAME, .offset = AT(sort),
     .names = sort_names, .help = "order of the lines; accuracy and R² from high to low, RMSE from low to high", .local = true},
    {.table = cli_runs_options, .offset = AT(common)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_runs = {
    .name = "runs",
    .help = "list the runs, or remove some",
    .usage = "paceline runs [options]\n"
             "       paceline runs rm RUN … [options]",
    .examples = "  paceline runs --sort accuracy\n"
                "  paceline runs --json | jq '.runs[-1]'\n"
                "  paceline runs rm vgg11-cifar10-1\n",
    .verbs = verbs,
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.common = {.runs_dir = "runs"}, .sort = "created"},
    .max_positional = BASE_MAX_TEXTS,
    .run = cmd_runs,
};
