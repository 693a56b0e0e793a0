/* SPDX-License-Identifier: MIT
 *
 * paceline ping: starts workers as any job would and lets them exchange messages: do the hosts find
 * each other, is the token the right one, how long does a round take.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/cluster.h"

struct args {
    struct cluster_flags cluster;
    int64_t count, bytes;
    double interval;
    const char *events, *status;
    bool json;
};

static base_status cmd_ping_report(const struct args *a, const json_t *result)
{
    const json_t *seconds = json_object_get(result, "seconds");

    if (a->json)
        return base_json_print(result);
    printf("%lld rounds of %lld workers on %lld hosts, %lld bytes to each other: median %.1f us, "
           "min %.1f, max %.1f; %lld views, %lld workers lost\n",
           json_integer_value(json_object_get(result, "rounds")),
           json_integer_value(json_object_get(result, "workers")),
           json_integer_value(json_object_get(result, "hosts")),
           json_integer_value(json_object_get(result, "bytes")),
           1e6 * json_number_value(json_object_get(seconds, "median")),
           1e6 * json_number_value(json_object_get(seconds, "min")),
           1e6 * json_number_value(json_object_get(seconds, "max")),
           json_integer_value(json_object_get(result, "views")),
           json_integer_value(json_object_get(result, "lost")));
    return BASE_OK;
}

static base_status cmd_ping(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct cluster_setup setup = {
        .program = "ping", .least = 1, .joins = true, .status = a->status};
    json_t *result = NULL;

    (void)positional;
    TRY(cluster_launch_find(&a->cluster, &setup.launch));
    if (a->events != NULL)
        TRY(base_events_open(a->events, &setup.events));
    setup.job = json_pack("{s:I, s:I, s:f}", "count", (json_int_t)a->count, "bytes",
                          (json_int_t)a->bytes, "interval", a->interval);
    TRY(cli_cluster_run(&setup, &result));
    if (result != NULL)
        TRY(cmd_ping_report(a, result));
out:
    if (setup.events != NULL && st == BASE_OK)
        st = base_events_close(setup.events);
    else
        base_ignore(base_events_close(setup.events));
    json_decref(setup.job);
    json_decref(result);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "count", .argument = "N", .kind = BASE_INT, .offset = AT(count), .min = 1, .max = 1e12,
     .help = "rounds", .local = true},
    {.name = "bytes", .argument = "B", .kind = BASE_INT, .offset = AT(bytes), .min = 24,
     .max = 1 << 30, .help = "to each other worker, in each round", .local = true},
    {.name = "interval", .argument = "S", .kind = BASE_REAL, .offset = AT(interval), .max = 60,
     .help = "seconds between rounds", .local = true},
    {.table = cluster_options, .offset = AT(cluster)},
    {.name = "events", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(events),
     .help = "append the job's events to this file", .local = true},
    {.name = "status", .argument = "SOCKET", .kind = BASE_TEXT, .offset = AT(status),
     .help = "answer `paceline status SOCKET` while it runs", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_ping = {
    .name = "ping",
    .help = "start workers and let them exchange messages: does the cluster work?",
    .usage = "paceline ping [options]",
    .examples =
        "  paceline ping --workers 4\n"
        "  paceline ping --num-nodes 2 --rank 0 --master-ip 10.0.0.1 --token-file job.token\n",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.cluster = CLUSTER_FLAGS, .count = 1000, .bytes = 64},
    .run = cmd_ping,
};
