/* SPDX-License-Identifier: MIT
 *
 * What a file in cli/commands/ provides: `const struct cli_command cli_command_NAME`. Options are
 * a table over the command's own argument struct, so that parsing, --help with defaults, shell
 * completion and the man page all come from the same lines. A command with verbs
 * (`paceline data get …`) reads its verb as the first positional argument.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/option.h"

struct cli_positional {
    int count;
    const char **at;
    struct base_given *passed; /* options of another command, in their order */
    int passed_count;
    const struct base_option *options; /* the command's option table */
    bool *given;                       /* for each option: it was on the command line */
};

/* True if this option was on the command line. */
bool cli_given(const struct cli_positional *positional, const char *name);

struct cli_command {
    const char *name, *help;  /* "train", "train a model" */
    const char *usage;        /* "paceline train --model M --data D [options]" */
    const char *examples;     /* lines shown under Examples: */
    const char *const *verbs; /* NULL, or a NULL-ended list for completion and errors */
    const char
        *completes; /* kind of its arguments after a verb: RUN, M, D, LAB, COMMAND; or NULL */
    const struct base_option *options; /* may be NULL */
    const struct base_option *passes;  /* of another command: taken as texts; NULL: none */
    size_t args_size;                  /* bytes of the argument struct; 0 without options */
    const void *defaults;              /* the argument struct's initial value */
    int min_positional, max_positional;
    bool hidden; /* for the program itself and not for people: --help does not show it */
    /* Failures come back as a status; main prints the message, as JSON too where the argument
     * struct has a flag option named "json" that is set. */
    base_status (*run)(void *args, const struct cli_positional *positional);
};

extern const struct cli_command *const cli_command_registry[];
extern const size_t cli_command_count;

#endif
