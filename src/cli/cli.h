/* SPDX-License-Identifier: MIT
 *
 * The command line: parsing of one command's arguments, help in its three forms, and the whole
 * program as a function.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include "cli/command.h"

/* Fills `args` (already holding the defaults) and `positional`, to be released also after a
 * failure. *help_p: --help was asked for. */
base_status cli_parse(const struct cli_command *command, int argc, char **argv, void *args,
                      struct cli_positional *positional, bool *help_p);
void cli_positional_fini(struct cli_positional *positional);

base_status cli_find(const char *name, const struct cli_command **command_p);

void cli_help_overview(FILE *out);
void cli_help_command(FILE *out, const struct cli_command *command);
void cli_help_man(FILE *out);
base_status cli_help_completion(FILE *out, const char *shell);
char *
cli_help_option(const struct base_option *row); /* its help and the names it takes; base_free */

/* What the commands that look at runs are told: --runs-dir, --json. */
struct cli_runs_args {
    const char *runs_dir;
    bool json;
};
extern const struct base_option cli_runs_options[];
extern const struct cli_runs_args cli_runs_defaults;

/* Sorts a list of objects by one of their fields, the best or lowest first: accuracies and speeds
 * from high to low, other numbers from low to high, texts by the alphabet, null last. */
void cli_sort(json_t *list, const char *key);

/* rows x columns texts (base_free; taken over): titles in the first row. The first column is
 * aligned on the left, the others on the right. */
void cli_table(FILE *out, char **cells, size_t rows, size_t columns);

/* A field of a CSV file, RFC 4180. */
void cli_csv_field(const char *text, FILE *out);

/* The exit code. */
int cli_main(int argc, char **argv);

#endif
