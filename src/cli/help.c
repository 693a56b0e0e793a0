/* SPDX-License-Identifier: MIT
 *
 * Help in its forms, all from the tables of the commands: text for people, a man page, and
 * completion for bash, zsh and fish.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

static const char intro[] =
    "paceline trains neural networks on CPU machines, in one small program.\n";

void cli_help_overview(FILE *out)
{
    fprintf(out, "%s\nusage: paceline COMMAND [arguments]\n\nCommands:\n", intro);
    for (size_t i = 0; i < cli_command_count; i++)
        if (!cli_command_registry[i]->hidden)
            fprintf(out, "  %-12s %s\n", cli_command_registry[i]->name,
                    cli_command_registry[i]->help);
    fputs("\nExamples:\n"
          "  paceline train --model mnist-cnn --data fashion-mnist --epochs 2\n"
          "  paceline eval runs/mnist-cnn-fashion-mnist-1 --data fashion-mnist\n"
          "  paceline model show vgg11\n"
          "\n'paceline COMMAND --help' tells about one command.\n",
          out);
}

char *cli_help_option(const struct base_option *row)
{
    struct base_str text = {0};
    const char *name;

    base_str_add(&text, "%s", row->help);
    for (size_t i = 0; (name = base_option_choice(row, i)) != NULL; i++)
        base_str_add(&text, "%s%s", i == 0 ? ": " : ", ", name);
    return base_str_take(&text);
}

/* What --help and the manual show in brackets: "" for flags that are off and options without one.
 */
static char *default_text(const struct cli_command *command, const struct base_option *row)
{
    char *value = base_option_text(row, command->defaults), *text;
    bool shown = value != NULL && value[0] != '\0' && strcmp(value, "off") != 0;

    text = shown ? base_format(" [%s]", value) : base_strdup("");
    base_free(value);
    return text;
}

static void option_line(FILE *out, const struct cli_command *command, const struct base_option *row)
{
    char *name = base_format("--%s%s%s", row->name, row->argument != NULL ? " " : "",
                             row->argument != NULL ? row->argument : "");
    char *value = default_text(command, row), *help = cli_help_option(row);

    fprintf(out, "  %-24s %s", name, help);
    if (row->alias != NULL)
        fprintf(out, " (also --%s)", row->alias);
    fprintf(out, "%s\n", value);
    base_free(name);
    base_free(value);
    base_free(help);
}

void cli_help_command(FILE *out, const struct cli_command *command)
{
    struct base_option row;

    fprintf(out, "paceline %s: %s\n\nusage: %s\n", command->name, command->help, command->usage);
    if (command->options != NULL)
        fputs("\nOptions [default]; flags are cleared with --no-NAME:\n", out);
    for (size_t i = 0; base_option_at(command->options, i, &row); i++)
        option_line(out, command, &row);
    if (command->examples != NULL)
        fprintf(out, "\nExamples:\n%s", command->examples);
}

/* roff wants hyphens and backslashes escaped, and no line that begins with a dot. */
static void roff(FILE *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '-')
            fputs("\\-", out);
        else if (*at == '\\')
            fputs("\\e", out);
        else if (*at == '.' && (at == text || at[-1] == '\n'))
            fputs("\\&.", out);
        else
            fputc(*at, out);
    }
}

static void man_option(FILE *out, const struct cli_command *command, const struct base_option *row)
{
    char *value = default_text(command, row), *help = cli_help_option(row);

    fputs(".TP\n.B \\-\\-", out);
    roff(out, row->name);
    if (row->argument != NULL) {
        fputc(' ', out);
        roff(out, row->argument);
    }
    if (row->alias != NULL) {
        fputs(", \\-\\-", out);
        roff(out, row->alias);
    }
    fputc('\n', out);
    roff(out, help);
    roff(out, value);
    fputs(".\n", out);
    base_free(value);
    base_free(help);
}

/* A line for each form of the command; those after the first are indented for --help. */
static void man_synopsis(FILE *out, const char *usage)
{
    while (*usage != '\0') {
        char *line = base_strndup(usage, strcspn(usage, "\n"));

        fputs(".B ", out);
        roff(out, line);
        fputs("\n.br\n", out);
        base_free(line);
        usage += strcspn(usage, "\n");
        usage += strspn(usage, "\n ");
    }
}

static void man_command(FILE *out, const struct cli_command *command)
{
    struct base_option row;

    fprintf(out, ".SS %s\n", command->name);
    man_synopsis(out, command->usage);
    roff(out, command->help);
    fputs(".\n", out);
    for (size_t i = 0; base_option_at(command->options, i, &row); i++)
        man_option(out, command, &row);
    if (command->examples != NULL) {
        fputs(".PP\nExamples:\n.nf\n", out);
        roff(out, command->examples);
        fputs(".fi\n", out);
    }
}

void cli_help_man(FILE *out)
{
    fputs(".TH PACELINE 1 \"\" \"paceline " PACELINE_VERSION "\" \"User Commands\"\n"
          ".SH NAME\npaceline \\- train neural networks on CPU machines\n"
          ".SH SYNOPSIS\n.B paceline\nCOMMAND [arguments]\n.SH COMMANDS\n"
          "Defaults are in brackets; a flag is cleared with \\-\\-no\\-NAME.\n",
          out);
    for (size_t i = 0; i < cli_command_count; i++)
        if (!cli_command_registry[i]->hidden)
            man_command(out, cli_command_registry[i]);
    fputs(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 128+n ended by signal n.\n"
          ".SH ENVIRONMENT\n.TP\n.B PACELINE_DATA\nwhere data sets are kept "
          "(default: the user's cache directory).\n"
          ".TP\n.B PACELINE_TOKEN\nthe job's token, where there is no \\-\\-token\\-file.\n"
          ".TP\n.B PACELINE_CPU\nkernel level to use: portable or avx2.\n"
          ".TP\n.B NO_COLOR\nno colours.\n",
          out);
}

static void bash_completion(FILE *out)
{
    fputs("_paceline() {\n    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
          "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"",
          out);
    for (size_t i = 0; i < cli_command_count; i++)
        if (!cli_command_registry[i]->hidden)
            fprintf(out, "%s ", cli_command_registry[i]->name);
    fputs("--help --version\"\n    else\n        case ${COMP_WORDS[1]} in\n", out);
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = cli_command_registry[i];
        struct base_option row;

        if (command->hidden)
            continue;
        fprintf(out, "        %s) words=\"", command->name);
        for (const char *const *verb = command->verbs; verb != NULL && *verb != NULL; verb++)
            fprintf(out, "%s ", *verb);
        for (size_t j = 0; base_option_at(command->options, j, &row); j++)
            fprintf(out, "--%s ", row.name);
        fputs("--help\" ;;\n", out);
    }
    fputs("        esac\n    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
          "complete -o default -F _paceline paceline\n",
          out);
}

static void fish_completion(FILE *out)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = cli_command_registry[i];
        struct base_option row;

        if (command->hidden)
            continue;
        fprintf(out, "complete -c paceline -n __fish_use_subcommand -a %s -d \"%s\"\n",
                command->name, command->help);
        for (const char *const *verb = command->verbs; verb != NULL && *verb != NULL; verb++)
            fprintf(out, "complete -c paceline -n '__fish_seen_subcommand_from %s' -a %s\n",
                    command->name, *verb);
        for (size_t j = 0; base_option_at(command->options, j, &row); j++)
            fprintf(out, "complete -c paceline -n '__fish_seen_subcommand_from %s' -l %s\n",
                    command->name, row.name);
    }
}

base_status cli_help_completion(FILE *out, const char *shell)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};

    if (strcmp(shell, "fish") == 0) {
        fish_completion(out);
    } else if (strcmp(shell, "zsh") == 0) {
        fputs("#compdef paceline\nautoload -U +X bashcompinit && bashcompinit\n", out);
        bash_completion(out);
    } else if (strcmp(shell, "bash") == 0) {
        bash_completion(out);
    } else {
        return base_unknown(BASE_ERR_USAGE, "shell", shell, shells, 3);
    }
    return BASE_OK;
}
