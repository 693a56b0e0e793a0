/* SPDX-License-Identifier: MIT
 *
 * paceline completion bash|zsh|fish
 */
#include "cli/cli.h"

static base_status cmd_completion(void *args, const struct cli_positional *positional)
{
    (void)args;
    return cli_help_completion(stdout, positional->at[0]);
}

static const char *const verbs[] = {"bash", "zsh", "fish", NULL};

const struct cli_command cli_command_completion = {
    .name = "completion",
    .help = "print completion for a shell",
    .usage = "paceline completion bash|zsh|fish",
    .examples = "  source <(paceline completion bash)\n",
    .verbs = verbs,
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_completion,
};
