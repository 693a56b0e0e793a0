/* SPDX-License-Identifier: MIT
 *
 * Help in its forms, all from the tables of the commands: text for people, a man page, and
 * completion for bash, zsh and fish.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "data/get.h"
#include "lab/lab.h"
#include "nn/zoo.h"

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
    if (row->live)
        base_str_add(&text, " (changes with `paceline set`)");
    return base_str_take(&text);
}

/* The default that --help and the manual show in brackets: "" for flags that are off and for
 * options without a default. */
static char *default_text(const struct cli_command *command, const struct base_option *row)
{
    char *value = base_option_text(row, command->defaults), *text;
    bool shown = value != NULL && value[0] != '\0' && strcmp(value, "off") != 0;

    text = shown ? base_format(" [%s]", value) : base_strdup("");
    base_free(value);
    return text;
}

/* An alias of one letter is a short option. */
static const char *dashes(const char *alias)
{
    return alias[1] == '\0' ? "-" : "--";
}

static void option_line(FILE *out, const struct cli_command *command, const struct base_option *row)
{
    char *name = base_format("--%s%s%s", row->name, row->argument != NULL ? " " : "",
                             row->argument != NULL ? row->argument : "");
    char *value = default_text(command, row), *help = cli_help_option(row);

    fprintf(out, "  %-24s %s", name, help);
    if (row->alias != NULL)
        fprintf(out, " (also %s%s)", dashes(row->alias), row->alias);
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
        fputs(row->alias[1] == '\0' ? ", \\-" : ", \\-\\-", out);
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
          ".TP\n.B PACELINE_CPU\nkernel level to use: portable, avx2 or avx512.\n"
          ".TP\n.B NO_COLOR\nno colours.\n",
          out);
}

/* ---- completion ---- */

/* Adds the words that an argument can be, by its name in usages and tables: RUN, M, D, LAB,
 * COMMAND; `runs` is the shell's command that lists runs. Adds nothing if any text is right. */
static void add_words(struct base_str *words, const char *argument, const char *runs)
{
    const char *const *sets = NULL;
    size_t count = data_get_names(&sets);

    if (strcmp(argument, "RUN") == 0)
        base_str_add(words, "%s ", runs);
    for (size_t i = 0; strcmp(argument, "M") == 0 && i < nn_zoo_count; i++)
        base_str_add(words, "%s ", nn_zoo_registry[i]->name);
    for (size_t i = 0; strcmp(argument, "D") == 0 && i < count; i++)
        base_str_add(words, "%s ", sets[i]);
    for (size_t i = 0; strcmp(argument, "LAB") == 0 && lab_builtins[i].name != NULL; i++)
        base_str_add(words, "%s ", lab_builtins[i].name);
    for (size_t i = 0; strcmp(argument, "COMMAND") == 0 && i < cli_command_count; i++)
        if (!cli_command_registry[i]->hidden)
            base_str_add(words, "%s ", cli_command_registry[i]->name);
}

/* The words for an option with an argument: the names it takes, else those of its argument's kind;
 * base_free. */
static char *row_words(const struct base_option *row, const char *runs)
{
    struct base_str words = {0};
    const char *name;

    base_str_add(&words, "%s", "");
    for (size_t i = 0; (name = base_option_choice(row, i)) != NULL; i++)
        base_str_add(&words, "%s ", name);
    if (words.length == 0)
        add_words(&words, row->argument, runs);
    return base_str_take(&words);
}

static const char bash_begin[] =
    "_paceline_runs() {\n"
    "    local i dir=runs\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        [ \"${COMP_WORDS[i]}\" = --runs-dir ] && dir=${COMP_WORDS[i + 1]}\n"
    "    done\n"
    "    for i in \"$dir\"/*/run.json; do\n"
    "        [ -e \"$i\" ] && i=${i%/run.json} && echo \"${i##*/}\"\n"
    "    done\n"
    "}\n"
    "_paceline() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
    "    [ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n" /* --model=vgg is three words */
    "    [ \"$cur\" = = ] && cur=\n"
    "    case ${COMP_WORDS[1]}:$COMP_CWORD:$prev in\n";

/* Completes the values of options, then verbs or the command's arguments, and its options. */
static void bash_command(FILE *out, const struct cli_command *command)
{
    struct base_str words = {0};
    struct base_option row;

    for (size_t i = 0; base_option_at(command->options, i, &row); i++) {
        char *values = row.argument != NULL ? row_words(&row, "$(_paceline_runs)") : NULL;

        if (values != NULL)
            fprintf(out, "    %s:*:--%s) words=\"%s\" ;;\n", command->name, row.name, values);
        if (values != NULL && row.alias != NULL)
            fprintf(out, "    %s:*:%s%s) words=\"%s\" ;;\n", command->name, dashes(row.alias),
                    row.alias, values);
        base_free(values);
        base_str_add(&words, "--%s ", row.name);
    }
    base_str_add(&words, "--help");
    if (command->verbs != NULL) {
        fprintf(out, "    %s:2:*) words=\"", command->name);
        for (const char *const *verb = command->verbs; *verb != NULL; verb++)
            fprintf(out, "%s ", *verb);
        fprintf(out, "%s\" ;;\n", words.text);
    }
    if (command->completes != NULL) {
        base_str_add(&words, " ");
        add_words(&words, command->completes, "$(_paceline_runs)");
    }
    fprintf(out, "    %s:*) words=\"%s\" ;;\n", command->name, words.text);
    base_str_fini(&words);
}

static void bash_completion(FILE *out)
{
    struct base_str commands = {0};

    add_words(&commands, "COMMAND", "");
    fprintf(out, "%s    *:1:*) words=\"%s--help --version\" ;;\n", bash_begin, commands.text);
    for (size_t i = 0; i < cli_command_count; i++)
        if (!cli_command_registry[i]->hidden)
            bash_command(out, cli_command_registry[i]);
    fputs("    esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
          "complete -o default -F _paceline paceline\n",
          out);
    base_str_fini(&commands);
}

static void fish_command(FILE *out, const struct cli_command *command)
{
    static const char runs[] = "(ls runs 2>/dev/null)";
    struct base_str words = {0};
    struct base_option row;

    fprintf(out, "complete -c paceline -n __fish_use_subcommand -a %s -d \"%s\"\n", command->name,
            command->help);
    for (const char *const *verb = command->verbs; verb != NULL && *verb != NULL; verb++)
        fprintf(out, "complete -c paceline -n '__fish_seen_subcommand_from %s' -a %s\n",
                command->name, *verb);
    if (command->completes != NULL) {
        add_words(&words, command->completes, runs);
        fprintf(out, "complete -c paceline -n '__fish_seen_subcommand_from %s' -a '%s'\n",
                command->name, words.text);
    }
    for (size_t i = 0; base_option_at(command->options, i, &row); i++) {
        char *values = row.argument != NULL ? row_words(&row, runs) : NULL;

        fprintf(out, "complete -c paceline -n '__fish_seen_subcommand_from %s' -l %s",
                command->name, row.name);
        if (values != NULL)
            fprintf(out, " -r");
        if (values != NULL && values[0] != '\0')
            fprintf(out, " -a '%s'", values);
        fputc('\n', out);
        base_free(values);
    }
    base_str_fini(&words);
}

base_status cli_help_completion(FILE *out, const char *shell)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};

    if (strcmp(shell, "fish") == 0) {
        for (size_t i = 0; i < cli_command_count; i++)
            if (!cli_command_registry[i]->hidden)
                fish_command(out, cli_command_registry[i]);
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
