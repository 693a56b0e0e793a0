/* SPDX-License-Identifier: MIT
 *
 * paceline status RUN: asks a running job who is there and what they do.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cluster/status.h"

/* A run by name or folder, or the socket itself. */
static char *find_socket(const char *runs_dir, const char *name)
{
    struct stat file;

    if (stat(name, &file) == 0 && S_ISSOCK(file.st_mode))
        return base_strdup(name);
    if (base_is_dir(name))
        return base_format("%s/status", name);
    return base_format("%s/%s/status", runs_dir, name);
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "-";
}

static void print_rank(const json_t *worker)
{
    const json_t *rank = json_object_get(worker, "rank");

    if (json_is_integer(rank))
        printf("%4lld", json_integer_value(rank));
    else
        printf("%4s", "-");
}

static void print_table(const json_t *s)
{
    size_t i;
    json_t *item;

    printf("%s, %s for %.0f s, view %.0f\n", text(s, "program"), text(s, "phase"),
           number(s, "seconds"), number(s, "view"));
    printf("\n%4s  %-20s %-24s %8s %6s %9s %6s %8s\n", "host", "name", "address", "workers",
           "cpu %", "memory MB", "load", "silent s");
    json_array_foreach(json_object_get(s, "hosts"), i, item)
    {
        printf("%4.0f  %-20s %-24s %8.0f %6.0f %9.0f %6.2f %8.1f\n", number(item, "host"),
               text(item, "name"), text(item, "address"), number(item, "workers"),
               100 * number(item, "cpu"), number(item, "memory") / 1e6, number(item, "load"),
               number(item, "silent_seconds"));
    }
    printf("\n%6s %4s %4s %8s %-9s %6s %9s %10s %8s\n", "worker", "rank", "host", "pid", "state",
           "cpu %", "memory MB", "step", "steps/s");
    json_array_foreach(json_object_get(s, "workers"), i, item)
    {
        printf("%6.0f ", number(item, "id"));
        print_rank(item);
        printf(" %4.0f %8.0f %-9s %6.0f %9.0f %10.0f %8.2f\n", number(item, "host"),
               number(item, "pid"), text(item, "state"), 100 * number(item, "cpu"),
               number(item, "memory") / 1e6, number(item, "step"), number(item, "step_rate"));
    }
}

static base_status run(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct cli_runs_args *a = args;
    char *path = find_socket(a->runs_dir, positional->at[0]);
    json_t *status = NULL;

    TRY(cluster_status_ask(path, base_now() + 5, &status));
    if (a->json)
        TRY(base_json_print(status));
    else
        print_table(status);
out:
    json_decref(status);
    base_free(path);
    return st;
}

const struct cli_command cli_command_status = {
    .name = "status",
    .help = "hosts and workers of a running job",
    .usage = "paceline status RUN|SOCKET [options]",
    .examples = "  paceline status mine\n  paceline status runs/mine --json | jq '.workers'\n",
    .completes = "RUN",
    .options = cli_runs_options,
    .args_size = sizeof(struct cli_runs_args),
    .defaults = &cli_runs_defaults,
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
