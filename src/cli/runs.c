/* SPDX-License-Identifier: MIT
 *
 * Options of the commands that look at runs.
 */
#include "cli/cli.h"

const struct base_option cli_runs_options[] = {
    {.name = "runs-dir",
     .argument = "DIR",
     .kind = BASE_TEXT,
     .offset = offsetof(struct cli_runs_args, runs_dir),
     .help = "where runs are kept",
     .local = true},
    {.name = "json",
     .kind = BASE_FLAG,
     .offset = offsetof(struct cli_runs_args, json),
     .help = "one JSON object on standard output",
     .local = true},
    {0},
};

const struct cli_runs_args cli_runs_defaults = {.runs_dir = "runs"};
