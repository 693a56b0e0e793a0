/* SPDX-License-Identifier: MIT
 *
 * paceline status RUN: asks a running job which workers it has and what they do. A training in one
 * process has no coordinator to ask: its run's folder and /proc tell the same about it.
 */
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cluster/monitor.h"
#include "cluster/status.h"
#include "train/figures.h"
#include "train/run.h"

static double cmd_status_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *cmd_status_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "-";
}

static void cmd_status_print_rank(const json_t *worker)
{
    const json_t *rank = json_object_get(worker, "rank");

    if (json_is_integer(rank))
        printf("%4lld", json_integer_value(rank));
    else
        printf("%4s", "-");
}

/* "worker+server"; base_free. */
static char *cmd_status_roles(const json_t *worker)
{
    struct base_str text = {0};
    size_t i;
    json_t *role;

    json_array_foreach(json_object_get(worker, "roles"), i, role)
        base_str_add(&text, "%s%s", i > 0 ? "+" : "", json_string_value(role));
    if (text.length == 0)
        base_str_add(&text, "-");
    return text.text;
}

/* What the strategy has counted on all workers together, a line each. */
static void cmd_status_print_figures(const json_t *workers)
{
    json_t *sum = json_object(), *item;
    const char *name;
    size_t i;

    json_array_foreach(workers, i, item) train_figures_add(sum, json_object_get(item, "figures"));
    json_object_del(sum, TRAIN_FIGURES_ANOMALY);
    if (json_object_size(sum) > 0)
        printf("\nfigures of the strategy, all workers together:\n");
    json_object_foreach(sum, name, item)
    {
        char *text = json_dumps(item, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

        printf("%24s  %s\n", name, text);
        base_free(text);
    }
    json_decref(sum);
}

/* Workers that have become slow, a line each. */
static void cmd_status_print_slow(const json_t *workers)
{
    size_t i;
    json_t *item;

    json_array_foreach(workers, i, item)
    {
        const json_t *figures = json_object_get(item, "figures");

        if (json_object_get(figures, TRAIN_FIGURES_ANOMALY) != NULL)
            printf("\nworker %.0f on host %.0f: %s\n", cmd_status_number(item, "id"),
                   cmd_status_number(item, "host"),
                   cmd_status_text(figures, TRAIN_FIGURES_ANOMALY));
    }
}

static void cmd_status_print_table(const json_t *s)
{
    size_t i;
    json_t *item;

    printf("%s, %s for %.0f s, view %.0f\n", cmd_status_text(s, "program"),
           cmd_status_text(s, "phase"), cmd_status_number(s, "seconds"),
           cmd_status_number(s, "view"));
    printf("\n%4s  %-20s %-24s %8s %6s %9s %6s %8s\n", "host", "name", "address", "workers",
           "cpu %", "memory MB", "load", "silent s");
    json_array_foreach(json_object_get(s, "hosts"), i, item)
    {
        printf("%4.0f  %-20s %-24s %8.0f %6.0f %9.0f %6.2f %8.1f\n",
               cmd_status_number(item, "host"), cmd_status_text(item, "name"),
               cmd_status_text(item, "address"), cmd_status_number(item, "workers"),
               100 * cmd_status_number(item, "cpu"), cmd_status_number(item, "memory") / 1e6,
               cmd_status_number(item, "load"), cmd_status_number(item, "silent_seconds"));
    }
    printf("\n%6s %4s %4s %8s %-9s %6s %9s %10s %8s  %s\n", "worker", "rank", "host", "pid",
           "state", "cpu %", "memory MB", "step", "steps/s", "roles");
    json_array_foreach(json_object_get(s, "workers"), i, item)
    {
        char *roles = cmd_status_roles(item);

        printf("%6.0f ", cmd_status_number(item, "id"));
        cmd_status_print_rank(item);
        printf(" %4.0f %8.0f %-9s %6.0f %9.0f %10.0f %8.2f  %s\n", cmd_status_number(item, "host"),
               cmd_status_number(item, "pid"), cmd_status_text(item, "state"),
               100 * cmd_status_number(item, "cpu"), cmd_status_number(item, "memory") / 1e6,
               cmd_status_number(item, "step"), cmd_status_number(item, "step_rate"), roles);
        base_free(roles);
    }
    cmd_status_print_slow(json_object_get(s, "workers"));
    cmd_status_print_figures(json_object_get(s, "workers"));
}

/* ---- a training in one process ---- */

static double cmd_status_seconds_since(const char *created)
{
    struct tm utc = {0};

    if (created == NULL || strptime(created, "%Y-%m-%dT%H:%M:%SZ", &utc) == NULL)
        return 0;
    return fmax(0, difftime(time(NULL), timegm(&utc)));
}

/* Looks twice, because CPU is measured between two looks. */
static void cmd_status_look(int pid, struct cluster_load *process_p, struct cluster_load *host_p)
{
    enum { BETWEEN = 200 * 1000 }; /* microseconds */
    struct cluster_monitor process = {0}, host = {0};

    cluster_monitor_process(&process, pid, base_now(), process_p);
    cluster_monitor_host(&host, host_p);
    usleep(BETWEEN);
    cluster_monitor_process(&process, pid, base_now(), process_p);
    cluster_monitor_host(&host, host_p);
}

/* The object that a coordinator would answer with. */
static json_t *cmd_status_single(const struct train_run *run)
{
    int pid = (int)json_integer_value(json_object_get(run->json, "pid"));
    struct cluster_load process = {0}, host = {0};
    double age, seconds;
    json_t *newest = train_run_newest_step(run, &age), *object;
    const json_t *step = json_object_get(newest, "step");
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    cmd_status_look(pid, &process, &host);
    seconds = cmd_status_number(newest, "seconds");
    object = json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:f, s:[{s:i, s:o, s:s, s:i, s:i, s:f, s:f, s:f, s:f}], "
        "s:[{s:i, s:i, s:i, s:i, s:s, s:o, s:n, s:f, s:f, s:I, s:f}]}",
        "schema", 1, "job", run->name, "program", "train", "phase", "running", "view", 0, "seconds",
        cmd_status_seconds_since(json_string_value(json_object_get(run->json, "created"))), "hosts",
        "host", 0, "name", base_json_text(name), "address", "", "workers", 1, "pid", pid, "cpu",
        host.cpu, "memory", host.memory, "load", host.load, "silent_seconds", age, "workers", "id",
        0, "rank", 0, "host", 0, "pid", pid, "state", "ready", "roles",
        cluster_roles_json(CLUSTER_ROLE_WORKER), "figures", "cpu", process.cpu, "memory",
        process.memory, "step", json_is_integer(step) ? json_integer_value(step) : (json_int_t)-1,
        "step_rate", seconds > 0 ? 1 / seconds : 0);
    json_decref(newest);
    return object;
}

/* Without a socket, the run's folder tells its state. */
static base_status cmd_status_ask_folder(const char *runs_dir, const char *name, json_t **status_p)
{
    base_status st = BASE_OK;
    struct train_run run = {0};
    const char *status;

    st = train_run_open(runs_dir, name, &run);
    if (st == BASE_ERR_USAGE)
        TRY(base_fail(BASE_ERR_USAGE,
                      "nothing is running as '%s': there is no such run in %s, and no such socket",
                      name, runs_dir));
    TRY(st);
    status = train_run_status(&run);
    if (strcmp(status, "running") != 0)
        TRY(base_fail(BASE_ERR_USAGE, "nothing is running: run %s is %s", run.name, status));
    *status_p = cmd_status_single(&run);
out:
    train_run_close(&run);
    return st;
}

static base_status cmd_status(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct cli_runs_args *a = args;
    char *path = cli_run_socket(a->runs_dir, positional->at[0]);
    json_t *request = json_pack("{s:s}", "ask", "status"), *status = NULL;

    if (base_exists(path))
        TRY(cluster_status_ask(path, request, base_now() + 5, &status));
    else
        TRY(cmd_status_ask_folder(a->runs_dir, positional->at[0], &status));
    if (a->json)
        TRY(base_json_print(status));
    else
        cmd_status_print_table(status);
out:
    json_decref(status);
    json_decref(request);
    base_free(path);
    return st;
}

const struct cli_command cli_command_status = {
    .name = "status",
    .help = "hosts and workers of a running training or job",
    .usage = "paceline status RUN|SOCKET [options]",
    .examples = "  paceline status mine\n  paceline status runs/mine --json | jq '.workers'\n",
    .completes = "RUN",
    .options = cli_runs_options,
    .args_size = sizeof(struct cli_runs_args),
    .defaults = &cli_runs_defaults,
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_status,
};
