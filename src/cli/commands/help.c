/* SPDX-License-Identifier: MIT
 *
 * paceline help [COMMAND | --man]
 */
#include "cli/cli.h"

struct args {
    bool man;
};

static base_status cmd_help(void *args, const struct cli_positional *positional)
{
    const struct args *a = args;
    const struct cli_command *command = NULL;
    base_status st = BASE_OK;

    if (a->man) {
        cli_help_man(stdout);
    } else if (positional->count == 0) {
        cli_help_overview(stdout);
    } else {
        TRY(cli_find(positional->at[0], &command));
        cli_help_command(stdout, command);
    }
out:
    return st;
}

static const struct base_option options[] = {
    {.name = "man",
     .kind = BASE_FLAG,
     .offset = offsetof(struct args, man),
     .help = "the whole manual as a man page",
     .local = true},
    {0},
};

const struct cli_command cli_command_help = {
    .name = "help",
    .help = "tell about a command",
    .usage = "paceline help [COMMAND]",
    .examples = "  paceline help train\n  paceline help --man | man -l -\n",
    .completes = "COMMAND",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){0},
    .max_positional = 1,
    .run = cmd_help,
};
