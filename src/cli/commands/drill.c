/* SPDX-License-Identifier: MIT
 *
 * paceline drill SOCKET: starts workers that do collectives as the program at the Unix socket
 * tells them (cli/programs/drill.c). Not for people: for bench/ and tests/dist.
 */
#include "base/json.h"
#include "cli/cli.h"
#include "cluster/agent.h"
#include "coll/coll.h"

struct args {
    struct cluster_flags cluster;
    const char *collective, *events;
};

static base_status cmd_drill(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct cluster_setup setup = {.program = "drill", .least = 1, .joins = true};
    json_t *result = NULL;

    if (a->collective != NULL)
        TRY(base_prefix(coll_force_check(a->collective), "--collective"));
    TRY(cluster_launch_find(&a->cluster, &setup.launch));
    if (a->events != NULL)
        TRY(base_events_open(a->events, &setup.events));
    setup.job = json_pack("{s:s, s:s?}", "socket", positional->at[0], "collective", a->collective);
    TRY(cluster_agent_run(&setup, &result));
out:
    base_ignore(base_events_close(setup.events));
    json_decref(setup.job);
    json_decref(result);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "collective", .argument = "C", .kind = BASE_TEXT, .offset = AT(collective),
     .help = "force algorithms [auto]", .local = true},
    {.name = "events", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(events),
     .help = "append the job's events to this file", .local = true},
    {.table = cluster_options, .offset = AT(cluster)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_drill = {
    .name = "drill",
    .help = "workers that a benchmark or a test drives",
    .usage = "paceline drill SOCKET [options]",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.cluster = CLUSTER_FLAGS},
    .min_positional = 1,
    .max_positional = 1,
    .hidden = true,
    .run = cmd_drill,
};
