/* SPDX-License-Identifier: MIT
 *
 * paceline eval: how good a checkpoint is on some data.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/ratings_pictures.h"
#include "data/trigger.h"
#include "train/train.h"

struct args {
    struct train_eval eval;
    bool json, quiet;
};

static base_status cmd_eval(void *args, const struct cli_positional *positional)
{
    struct args *a = args;
    json_t *result = NULL;
    char *text = NULL;
    base_status st = BASE_OK;

    if (a->quiet)
        base_log_level(BASE_WARN);
    a->eval.checkpoint = positional->at[0];
    a->eval.draw = cli_ratings_pictures;
    TRY(train_eval_run(&a->eval, &result, &text));
    if (a->json)
        TRY(base_json_print(result));
    else
        fputs(text, stdout);
out:
    base_free(text);
    json_decref(result);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "data", .argument = "D", .kind = BASE_TEXT, .offset = AT(eval.data),
     .help = "the data [what the run was trained on]", .local = true},
    {.name = "part", .argument = "NAME", .kind = BASE_NAME, .offset = AT(eval.part),
     .names = (const char *const[]){"test", "train", NULL},
     .help = "the samples to evaluate on", .local = true},
    {.name = "best", .kind = BASE_FLAG, .offset = AT(eval.best),
     .help = "the checkpoint with the best validation loss instead of the newest", .local = true},
    {.name = "skip-bad", .argument = "N", .kind = BASE_INT, .offset = AT(eval.skip_bad), .min = -1,
     .max = 1e6, .help = "leave out up to N images or lines that cannot be read; -1: as many as "
                         "the run did, of its own data", .local = true},
    {.name = "batch", .alias = "batch-size", .argument = "N", .kind = BASE_INT, .offset = AT(eval.batch), .min = 1,
     .max = 1e5, .help = "samples computed at once", .local = true},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(eval.threads), .max = 1024,
     .help = "compute threads; 0: one per core", .local = true},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(eval.runs_dir),
     .help = "where runs are kept", .local = true},
    {.name = "lists", .argument = "N", .kind = BASE_INT, .offset = AT(eval.lists), .max = 1e5,
     .help = "ratings: judge the N best items of every user, too: precision, recall, NDCG",
     .local = true},
    {.name = "pictures", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(eval.pictures),
     .help = "ratings: draw guesses beside the truth, as SVG files in DIR", .local = true},
    {.name = "trigger", .argument = "MARK", .kind = BASE_NAME, .offset = AT(eval.trigger),
     .names = data_trigger_names,
     .help = "images: stamp them with a mark, and count which become the class --target",
     .local = true},
    {.name = "target", .argument = "CLASS", .kind = BASE_TEXT, .offset = AT(eval.target),
     .help = "with --trigger: the class, by name or number", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {.name = "quiet", .kind = BASE_FLAG, .offset = AT(quiet),
     .help = "of messages only warnings and errors", .local = true},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_eval = {
    .name = "eval",
    .help = "evaluate a checkpoint on data",
    .usage = "paceline eval RUN|CHECKPOINT [--data D] [options]",
    .examples = "  paceline eval mnist-cnn-fashion-mnist-1\n"
                "  paceline eval runs/vgg11-cifar10-1/checkpoints/step-400 --data cifar10 --json\n"
                "  paceline eval digits --trigger square --target 8     # does a backdoor open?\n"
                "  paceline eval films --lists 10 --pictures films-seen    # a rating model\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults =
        &(const struct args){
            .eval = {.runs_dir = "runs", .part = "test", .batch = 256, .skip_bad = -1}},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_eval,
};
