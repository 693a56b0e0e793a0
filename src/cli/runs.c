/* SPDX-License-Identifier: MIT
 *
 * Options of the commands that look at runs.
 */
#include "cli/cli.h"

const struct base_option cli_runs_options[] = {
    {"runs-dir", "DIR", BASE_TEXT, offsetof(struct cli_runs_args, runs_dir), 0, 0,
     "where runs are kept", true},
    {"json", NULL, BASE_FLAG, offsetof(struct cli_runs_args, json), 0, 0,
     "one JSON object on standard output", true},
    {0},
};

const struct cli_runs_args cli_runs_defaults = {.runs_dir = "runs"};
