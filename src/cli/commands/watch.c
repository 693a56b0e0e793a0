/* SPDX-License-Identifier: MIT
 *
 * paceline watch RUN: a run as a page that goes on.
 */
#include <stddef.h>

#include "base/log.h"
#include "cli/cli.h"
#include "watch/watch.h"

struct args {
    struct watch_setup watch;
    bool quiet;
};

static base_status cmd_watch(void *args, const struct cli_positional *positional)
{
    struct args *a = args;

    if (a->quiet)
        base_log_level(BASE_WARN);
    a->watch.run = positional->at[0];
    return watch_run(&a->watch);
}

#define AT(field) offsetof(struct args, watch.field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "host", .argument = "ADDRESS", .kind = BASE_TEXT, .offset = AT(host),
     .help = "listen here; anything but a loopback address needs a token", .local = true},
    {.name = "port", .argument = "N", .kind = BASE_INT, .offset = AT(port), .min = -1, .max = 65535,
     .help = "0: any that is free; -1: 8090, or any if that is taken", .local = true},
    {.name = "token-file", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(token_file),
     .help = "the token that those who look must have, else PACELINE_WATCH_TOKEN", .local = true},
    {.name = "ready-file", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(ready_file),
     .help = "write the address there, as JSON, once the page is there", .local = true},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(runs_dir),
     .help = "where runs are kept", .local = true},
    {.name = "quiet", .kind = BASE_FLAG, .offset = offsetof(struct args, quiet),
     .help = "of messages only warnings and errors", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_watch = {
    .name = "watch",
    .help = "a run as a live page: curves, workers, hosts, losses, log",
    .usage = "paceline watch RUN [options]",
    .examples = "  paceline watch vgg11-cifar10-1           # then open http://127.0.0.1:8090\n"
                "  paceline train --model vgg11 --data cifar10 --watch\n"
                "  curl http://127.0.0.1:8090/metrics       # for Prometheus\n"
                "  paceline token a.token; paceline watch mine --host 0.0.0.0 --token-file "
                "a.token\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults =
        &(const struct args){.watch = {.host = "127.0.0.1", .port = -1, .runs_dir = "runs"}},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_watch,
};
