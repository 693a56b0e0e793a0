/* SPDX-License-Identifier: MIT
 *
 * The whole program as a function: finds the command, parses, runs, and is the one place that
 * prints a failure and chooses the exit code.
 */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/stop.h"
#include "base/str.h"

base_status cli_find(const char *name, const struct cli_command **command_p)
{
    const char **names;
    size_t count = 0;
    base_status st;

    *command_p = base_registry_get(name, cli_command_registry, cli_command_count);
    if (*command_p != NULL)
        return BASE_OK;
    names = base_calloc(cli_command_count, sizeof *names);
    for (size_t i = 0; i < cli_command_count; i++)
        if (!cli_command_registry[i]->hidden)
            names[count++] = cli_command_registry[i]->name;
    st = base_unknown(BASE_ERR_USAGE, "command", name, names, count);
    base_free(names);
    return st;
}

/* With --json there is one JSON object on stdout even when the arguments did not parse. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--json=on") == 0 ||
            strcmp(argv[i], "--json=true") == 0)
            return true;
    return false;
}

static void print_failure(base_status st, bool json)
{
    char host[256] = "";

    base_progress_clear();
    if (base_message()[0] == '\0') /* this is a worker, and its agent tells of its failure */
        return;
    fprintf(stderr, "%s%s\n",
            base_log_color() ? "\033[31mpaceline:\033[0m " : "paceline: ", base_message());
    if (!json)
        return;
    gethostname(host, sizeof host - 1);
    json_t *error = json_pack("{s:i, s:{s:s, s:o, s:o, s:o}}", "schema", 1, "error", "code",
                              base_code_name(st), "message", base_json_text(base_message()), "id",
                              base_blamed() != 0 ? json_integer(base_blamed()) : json_null(),
                              "host", base_json_text(host));

    base_ignore(base_json_print(error));
    json_decref(error);
}

/* Names and paths are written into run.json and manifests, which must be UTF-8. */
static base_status check_words(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!base_is_utf8(argv[i]))
            return base_fail(BASE_ERR_USAGE,
                             "argument %d ('%s') is not UTF-8; rename the file or folder it names",
                             i, argv[i]);
    return BASE_OK;
}

static base_status run_command(const struct cli_command *command, int argc, char **argv)
{
    base_status st = BASE_OK;
    void *args = base_calloc(1, command->args_size + 1);
    struct cli_positional positional = {0};
    bool help = false;

    if (command->defaults != NULL)
        memcpy(args, command->defaults, command->args_size);
    TRY(cli_parse(command, argc, argv, args, &positional, &help));
    if (help)
        cli_help_command(stdout, command);
    else
        TRY(command->run(args, &positional));
    if (fflush(stdout) != 0)
        TRY(base_fail(BASE_ERR_IO, "cannot write to standard output: %m"));
out:
    cli_positional_fini(&positional);
    base_free(args);
    return st;
}

/* A signal explains a command that was cut short or that lost its peers. It does not explain a full
 * disk or data that cannot be read, which would have failed without it. */
static bool signal_explains(base_status st)
{
    return st == BASE_OK || st == BASE_ERR_INTERRUPTED || st == BASE_ERR_PEER_LOST ||
           st == BASE_ERR_NETWORK || st == BASE_ERR_TIMEOUT;
}

int cli_main(int argc, char **argv)
{
    const struct cli_command *command = NULL;
    base_status st;

    if (argc < 2) {
        cli_help_overview(stderr);
        return base_exit_code(BASE_ERR_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_help_overview(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("paceline " PACELINE_VERSION);
        return 0;
    }
    st = check_words(argc, argv);
    if (st == BASE_OK)
        st = cli_find(argv[1], &command);
    if (st == BASE_OK)
        st = run_command(command, argc - 2, argv + 2);
    if (st != BASE_OK)
        print_failure(st, wants_json(argc, argv));
    if (base_stop_signal() != 0 && signal_explains(st))
        return 128 + base_stop_signal();
    return base_exit_code(st);
}
