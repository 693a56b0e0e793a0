/* SPDX-License-Identifier: MIT
 *
 * GNU-style long options over a command's table: --name value, --name=value, --flag, --no-flag,
 * hyphens or underscores, `--` ends options, -h is --help. An alias of one letter is a short option
 * (-o FILE). A misspelt option is answered with the nearest known one.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

static base_status unknown_option(const struct cli_command *command, const char *word,
                                  size_t length)
{
    size_t own = base_options_count(command->options), count = 0;
    const char **names = base_calloc(own + base_options_count(command->passes) + 1, sizeof *names);
    char *name = base_strndup(word, length);
    struct base_option row;
    base_status st;
    int near;

    for (size_t i = 0; base_option_at(command->options, i, &row); i++)
        names[count++] = row.name;
    for (size_t i = 0; base_option_at(command->passes, i, &row); i++)
        names[count++] = row.name;
    for (char *at = name; *at != '\0'; at++)
        if (*at == '_')
            *at = '-';
    near = base_nearest(name, names, count);
    if (near >= 0)
        st =
            base_fail(BASE_ERR_USAGE, "unknown option --%s; did you mean --%s?", name, names[near]);
    else
        st = base_fail(BASE_ERR_USAGE, "unknown option --%s; 'paceline %s --help' lists them", name,
                       command->name);
    base_free(name);
    base_free(names);
    return st;
}

/* The row of an option as it was typed, "no-NAME" of a flag, too. Its index, or -1. */
static int find_option(const struct base_option *options, const char *word, size_t length,
                       struct base_option *row_p, bool *negated_p)
{
    int index = base_option_find(options, word, length, row_p);

    *negated_p = false;
    if (index < 0 && length > 3 && strncmp(word, "no", 2) == 0 &&
        (word[2] == '-' || word[2] == '_')) {
        index = base_option_find(options, word + 3, length - 3, row_p);
        *negated_p = index >= 0 && row_p->kind == BASE_FLAG;
        if (!*negated_p)
            index = -1;
    }
    return index;
}

/* Parses one option at argv[*at] and moves *at past the words it used. */
static base_status parse_option(const struct cli_command *command, int argc, char **argv, int *at,
                                void *args, struct cli_positional *positional)
{
    const char *word = argv[*at] + (argv[*at][1] == '-' ? 2 : 1);
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const char *value = equals != NULL ? equals + 1 : NULL;
    struct base_option row;
    bool negated, own;
    int index = find_option(command->options, word, length, &row, &negated);

    own = index >= 0;
    if (!own)
        index = find_option(command->passes, word, length, &row, &negated);
    if (index < 0)
        return unknown_option(command, word, length);
    if (negated && value != NULL)
        return base_fail(BASE_ERR_USAGE, "--no-%s takes no value", row.name);
    *at += 1;
    if (row.kind == BASE_FLAG) {
        if (value == NULL)
            value = negated ? "off" : "on";
    } else if (value == NULL) {
        if (*at == argc)
            return base_fail(BASE_ERR_USAGE, "--%s needs a value: --%s %s", row.name, row.name,
                             row.argument);
        value = argv[*at];
        *at += 1;
    }
    if (!own) {
        positional->passed[positional->passed_count++] = (struct base_given){row.name, value};
        return BASE_OK;
    }
    positional->given[index] = true;
    return base_option_set(&row, "--", value, args);
}

/* True for a word like "-o": one letter that is an option's alias. */
static bool is_short(const struct cli_command *command, const char *word)
{
    struct base_option row;

    return strlen(word) == 2 && base_option_find(command->options, word + 1, 1, &row) >= 0;
}

static base_status check_count(const struct cli_command *command, const struct cli_positional *p)
{
    if (p->count < command->min_positional)
        return base_fail(BASE_ERR_USAGE, "%s needs %s; usage: %s", command->name,
                         p->count == 0 ? "an argument" : "another argument", command->usage);
    if (p->count > command->max_positional)
        return base_fail(BASE_ERR_USAGE, "'%s' is one argument too many for %s; usage: %s",
                         p->at[command->max_positional], command->name, command->usage);
    return BASE_OK;
}

base_status cli_parse(const struct cli_command *command, int argc, char **argv, void *args,
                      struct cli_positional *positional, bool *help_p)
{
    base_status st = BASE_OK;
    bool options_end = false;

    *help_p = false;
    *positional = (struct cli_positional){
        .options = command->options,
        .at = base_calloc((size_t)argc + 1, sizeof *positional->at),
        .passed = base_calloc((size_t)argc + 1, sizeof *positional->passed),
        .given = base_calloc(base_options_count(command->options) + 1, sizeof(bool))};
    for (int i = 0; i < argc;) {
        const char *word = argv[i];

        if (!options_end && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            *help_p = true;
            goto out;
        }
        if (!options_end && strcmp(word, "--") == 0) {
            options_end = true;
            i++;
        } else if (!options_end && (strncmp(word, "--", 2) == 0 || is_short(command, word))) {
            TRY(parse_option(command, argc, argv, &i, args, positional));
        } else if (!options_end && word[0] == '-' && word[1] != '\0') {
            TRY(base_fail(BASE_ERR_USAGE, "unknown option %s; options are long: --name", word));
        } else {
            positional->at[positional->count++] = word;
            i++;
        }
    }
    TRY(check_count(command, positional));
out:
    return st;
}

void cli_positional_fini(struct cli_positional *positional)
{
    base_free(positional->at);
    base_free(positional->passed);
    base_free(positional->given);
    *positional = (struct cli_positional){0};
}

bool cli_given(const struct cli_positional *positional, const char *name)
{
    struct base_option row;
    int index = base_option_find(positional->options, name, strlen(name), &row);

    return index >= 0 && positional->given[index];
}
