/* SPDX-License-Identifier: MIT
 *
 * paceline eval: how good a checkpoint is on some data.
 */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/cli.h"
#include "train/train.h"

struct args {
    struct train_eval eval;
    bool json, quiet;
};

static base_status run(void *args, const struct cli_positional *positional)
{
    static const char *const parts[] = {"test", "train"};
    struct args *a = args;
    json_t *result = NULL;
    base_status st = BASE_OK;

    if (a->quiet)
        base_log_level(BASE_WARN);
    if (strcmp(a->eval.part, parts[0]) != 0 && strcmp(a->eval.part, parts[1]) != 0)
        TRY(base_unknown(BASE_ERR_USAGE, "part", a->eval.part, parts, 2));
    a->eval.checkpoint = positional->at[0];
    TRY(train_eval_run(&a->eval, &result));
    if (a->json)
        TRY(base_json_print(result));
out:
    json_decref(result);
    return st;
}

#define AT(field) offsetof(struct args, field)

static const struct base_option options[] = {
    {"data", "D", BASE_TEXT, AT(eval.data), 0, 0, "the data [what the run was trained on]", true},
    {"part", "NAME", BASE_TEXT, AT(eval.part), 0, 0, "test or train", true},
    {"best", NULL, BASE_FLAG, AT(eval.best), 0, 0,
     "the checkpoint with the best validation loss instead of the newest", true},
    {"batch", "N", BASE_INT, AT(eval.batch), 1, 1e5, "samples computed at once", true},
    {"threads", "N", BASE_INT, AT(eval.threads), 0, 1024, "compute threads; 0: one per core", true},
    {"runs-dir", "DIR", BASE_TEXT, AT(eval.runs_dir), 0, 0, "where runs are kept", true},
    {"json", NULL, BASE_FLAG, AT(json), 0, 0, "one JSON object on standard output", true},
    {"quiet", NULL, BASE_FLAG, AT(quiet), 0, 0, "only warnings and errors", true},
    {0},
};

const struct cli_command cli_command_eval = {
    .name = "eval",
    .help = "evaluate a checkpoint on data",
    .usage = "paceline eval RUN|CHECKPOINT [--data D] [options]",
    .examples = "  paceline eval mnist-cnn-fashion-mnist-1\n"
                "  paceline eval runs/vgg11-cifar10-1/checkpoints/step-400 --data cifar10 --json\n",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.eval = {.runs_dir = "runs", .part = "test", .batch = 256}},
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
