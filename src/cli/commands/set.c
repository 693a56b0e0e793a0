/* SPDX-License-Identifier: MIT
 *
 * paceline set RUN NAME=VALUE: changes an option of the strategy of a running job.
 */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cluster/status.h"
#include "train/run.h"

/* Seconds; the job answers earlier, also where a change does not hold yet. */
static const double PATIENCE = 30;

static base_code cmd_set_code(const char *name)
{
    for (base_code code = BASE_OK; name != NULL && code <= BASE_ERR_INTERNAL; code++)
        if (strcmp(base_code_name(code), name) == 0)
            return code;
    return BASE_ERR_INTERNAL;
}

/* The job's own refusal. */
static base_status cmd_set_refused(const json_t *answer)
{
    const json_t *error = json_object_get(answer, "error");
    const char *message = json_string_value(json_object_get(error, "message"));

    if (error == NULL)
        return BASE_OK;
    return base_fail(cmd_set_code(json_string_value(json_object_get(error, "code"))), "%s",
                     message != NULL ? message : "the job refuses without a reason");
}

/* Why there is no socket to ask at. */
static base_status cmd_set_explain(const char *runs_dir, const char *name)
{
    base_status st = BASE_OK;
    struct train_run run = {0};
    const char *status;

    st = train_run_open(runs_dir, name, &run);
    if (st == BASE_ERR_USAGE)
        TRY(base_fail(BASE_ERR_USAGE,
                      "nothing is running as '%s': there is no such run in %s, and no such socket",
                      name, runs_dir));
    TRY(st);
    status = train_run_status(&run);
    if (strcmp(status, "running") != 0)
        TRY(base_fail(BASE_ERR_USAGE, "nothing is running: run %s is %s", run.name, status));
    TRY(base_fail(BASE_ERR_USAGE,
                  "run %s has no socket here: it is trained by one process, or its job is "
                  "coordinated on another host; settings change where a job of several workers is "
                  "coordinated",
                  run.name));
out:
    train_run_close(&run);
    return st;
}

static void cmd_set_print(const json_t *answer)
{
    const json_t *step = json_object_get(answer, "step");

    printf("%s=%s", json_string_value(json_object_get(answer, "name")),
           json_string_value(json_object_get(answer, "value")));
    if (json_is_integer(step))
        printf(" from step %lld on\n", json_integer_value(step));
    else
        printf(": accepted, but does not hold yet\n");
}

static base_status cmd_set(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct cli_runs_args *a = args;
    const char *equals = strchr(positional->at[1], '=');
    char *path = cli_run_socket(a->runs_dir, positional->at[0]), *name = NULL;
    json_t *request = NULL, *answer = NULL;

    if (equals == NULL || equals == positional->at[1])
        TRY(base_fail(BASE_ERR_USAGE, "'%s' is not NAME=VALUE", positional->at[1]));
    if (!base_exists(path))
        TRY(cmd_set_explain(a->runs_dir, positional->at[0]));
    name = base_strndup(positional->at[1], (size_t)(equals - positional->at[1]));
    request = json_pack("{s:s, s:s, s:s}", "ask", "set", "name", name, "value", equals + 1);
    TRY(cluster_status_ask(path, request, base_now() + PATIENCE, &answer));
    TRY(cmd_set_refused(answer));
    if (a->json)
        TRY(base_json_print(answer));
    else
        cmd_set_print(answer);
out:
    json_decref(answer);
    json_decref(request);
    base_free(name);
    base_free(path);
    return st;
}

const struct cli_command cli_command_set = {
    .name = "set",
    .help = "change an option of a running job's strategy",
    .usage = "paceline set RUN|SOCKET NAME=VALUE [options]",
    .examples = "  paceline set mine k=16\n  paceline set mine k=16 --json | jq .step\n",
    .completes = "RUN",
    .options = cli_runs_options,
    .args_size = sizeof(struct cli_runs_args),
    .defaults = &cli_runs_defaults,
    .min_positional = 2,
    .max_positional = 2,
    .run = cmd_set,
};
