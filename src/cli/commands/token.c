/* SPDX-License-Identifier: MIT
 *
 * paceline token: makes the secret that lets hosts join one job.
 */
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "comm/secret.h"

static base_status cmd_token(void *args, const struct cli_positional *positional)
{
    char text[COMM_TOKEN_TEXT];
    struct comm_secret secret;
    base_status st = BASE_OK;

    (void)args;
    TRY(comm_secret_new(&secret));
    if (positional->count > 0) {
        TRY(comm_secret_save(&secret, positional->at[0]));
        base_info("wrote %s; copy it to every host and name it with --token-file",
                  positional->at[0]);
    } else {
        comm_secret_text(&secret, text);
        if (printf("%s\n", text) < 0 || fflush(stdout) != 0)
            TRY(base_fail(BASE_ERR_IO, "cannot write to standard output: %m"));
    }
out:
    explicit_bzero(&secret, sizeof secret);
    explicit_bzero(text, sizeof text);
    return st;
}

const struct cli_command cli_command_token = {
    .name = "token",
    .help = "make the secret of a job on several hosts",
    .usage = "paceline token [FILE]",
    .examples = "  paceline token job.token               # a new file that only you can read\n"
                "  export PACELINE_TOKEN=$(paceline token) # or in the environment\n",
    .max_positional = 1,
    .run = cmd_token,
};
