/* SPDX-License-Identifier: MIT
 *
 * The command line: parsing of one command's arguments, help in its three forms, and the whole
 * program as a function.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include "cli/command.h"

/* Fills `args`, which already has the defaults, and `positional`, which must be released also after
 * a failure. *help_p: --help was given. */
base_status cli_parse(const struct cli_command *command, int argc, char **argv, void *args,
                      struct cli_positional *positional, bool *help_p);
void cli_positional_fini(struct cli_positional *positional);

base_status cli_find(const char *name, const struct cli_command **command_p);

void cli_help_overview(FILE *out);
void cli_help_command(FILE *out, const struct cli_command *command);
void cli_help_man(FILE *out);
base_status cli_help_completion(FILE *out, const char *shell);
/* An option's help and the names it takes; base_free. */
char *cli_help_option(const struct base_option *row);

/* The options of the commands that look at runs: --runs-dir, --json. */
struct cli_runs_args {
    const char *runs_dir;
    bool json;
};
extern const struct base_option cli_runs_options[];
extern const struct cli_runs_args cli_runs_defaults;

/* The socket at which a running job can be asked: `name` is a run's name or folder, or the socket
 * itself. It need not be there; base_free. */
char *cli_run_socket(const char *runs_dir, const char *name);

/* Sorts a list of objects by one of their fields, the best or lowest first: accuracies and speeds
 * from high to low, other numbers from low to high, texts by the alphabet, null last. */
void cli_sort(json_t *list, const char *key);

/* Prints rows x columns texts, which it takes over (base_free). The first row has the titles. The
 * first column is aligned on the left, the others on the right. */
void cli_table(FILE *out, char **cells, size_t rows, size_t columns);

/* A field of a CSV file, RFC 4180. */
void cli_csv_field(const char *text, FILE *out);

/* Runs the program; returns its exit code. */
int cli_main(int argc, char **argv);

#endif
