/* SPDX-License-Identifier: MIT
 *
 * paceline join HOST:PORT: adds this host's workers to a running job.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cluster/agent.h"

struct args {
    int64_t workers;
    const char *token_file, *bind;
};

/* "host:port", "[::1]:port" */
static base_status cmd_join_split(char *text, char **host_p, int64_t *port_p)
{
    char *colon = strrchr(text, ':'), *end = NULL;
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;

    *host_p = text;
    *port_p = colon != NULL ? strtol(colon + 1, &end, 10) : 0;
    if (length == 0 || *end != '\0' || *port_p < 1 || *port_p > UINT16_MAX)
        return base_fail(BASE_ERR_USAGE, "'%s' is not HOST:PORT of a job's host 0", text);
    *colon = '\0';
    if (text[0] == '[' && text[length - 1] == ']') {
        text[length - 1] = '\0';
        *host_p = text + 1;
    }
    return BASE_OK;
}

static base_status cmd_join(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct cluster_flags flags = CLUSTER_FLAGS;
    struct cluster_launch launch;
    char *text = base_strdup(positional->at[0]), *host;

    TRY(cmd_join_split(text, &host, &flags.port));
    flags.master_ip = host;
    flags.num_nodes = 2; /* ignores launchers' variables; host 0 gives this host its number */
    flags.rank = 1;
    flags.workers = a->workers;
    flags.token_file = a->token_file;
    flags.bind = a->bind;
    TRY(cluster_launch_find(&flags, &launch));
    TRY(cluster_agent_join(&launch, cluster_program_registry));
out:
    base_free(text);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "workers", .alias = "nproc-per-node", .argument = "W", .kind = BASE_INT,
     .offset = AT(workers), .min = 1, .max = COMM_MAX_WORKERS,
     .help = "worker processes to add", .local = true},
    {.name = "token-file", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(token_file),
     .help = "the job's token; needed beyond loopback; else PACELINE_TOKEN", .local = true},
    {.name = "bind", .argument = "IP", .kind = BASE_TEXT, .offset = AT(bind),
     .help = "numeric address this host listens on, where it has several", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_join = {
    .name = "join",
    .help = "add workers to a running job; Ctrl-C takes them away again",
    .usage = "paceline join HOST:PORT [options]",
    .examples = "  paceline join 10.0.0.1:7117 --workers 2 --token-file job.token\n",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.workers = 1},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_join,
};
