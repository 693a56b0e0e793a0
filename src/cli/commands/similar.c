/* SPDX-License-Identifier: MIT
 *
 * paceline similar RUN --item I: the items that are liked by the same users.
 */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/rating_run.h"

struct args {
    struct cli_rating_args run;
    const char *item;
};

static json_t *cmd_similar_json(const struct cli_rating_run *run, uint32_t item,
                                const struct recsys_pick *picks, uint32_t found)
{
    json_t *list = json_array(), *object;

    for (uint32_t r = 0; r < found; r++) {
        json_t *one = cli_rating_run_json(run, picks[r].item);

        json_object_set_new(one, "similarity", base_json_number((double)picks[r].score));
        json_array_append_new(list, one);
    }
    object = json_pack("{s:i, s:o, s:o}", "schema", 1, "run", base_json_text(run->checkpoint.path),
                       "similar", list);
    json_object_update_new(object, cli_rating_run_json(run, item));
    return object;
}

static void cmd_similar_print(const struct cli_rating_run *run, uint32_t item,
                              const struct recsys_pick *picks, uint32_t found)
{
    struct base_str text = {0};

    base_str_add(&text, "most like ");
    cli_rating_run_name(run, item, &text);
    base_str_add(&text, ":\n");
    for (uint32_t r = 0; r < found; r++) {
        base_str_add(&text, "%4u  %6.3f  ", r + 1, (double)picks[r].score);
        cli_rating_run_name(run, picks[r].item, &text);
        base_str_add(&text, "\n");
    }
    fputs(text.text, stdout);
    base_str_fini(&text);
}

static base_status cmd_similar(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct cli_rating_run run = {0};
    struct recsys_pick *picks = NULL;
    uint32_t item = 0, found = 0;
    json_t *json = NULL;

    if (a->item == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "which item? as in: paceline similar %s --item 318",
                      positional->at[0]));
    TRY(cli_rating_run_open(positional->at[0], &a->run, &run));
    TRY(cli_rating_run_item(&run, a->item, &item));
    TRY(base_tensor((size_t)a->run.n, sizeof *picks, "similar items", &picks));
    TRY(recsys_similar(run.saved->fit, item, (uint32_t)a->run.n, picks, &found));
    if (a->run.json) {
        json = cmd_similar_json(&run, item, picks, found);
        TRY(base_json_print(json));
    } else {
        cmd_similar_print(&run, item, picks, found);
    }
out:
    json_decref(json);
    base_free(picks);
    cli_rating_run_close(&run);
    return st;
}

static const struct base_option options[] = {{.name = "item",
                                              .argument = "I",
                                              .kind = BASE_TEXT,
                                              .offset = offsetof(struct args, item),
                                              .help = "the item's id",
                                              .local = true},
                                             {.table = cli_rating_options},
                                             {0}};

const struct cli_command cli_command_similar = {
    .name = "similar",
    .help = "items that are liked by the same users as one, by a trained rating model",
    .usage = "paceline similar RUN|CHECKPOINT --item I [options]",
    .examples = "  paceline similar films --item 318\n"
                "  paceline similar films --item 318 -n 20 --titles movies.csv --json\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.run = CLI_RATING_DEFAULTS},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_similar,
};
