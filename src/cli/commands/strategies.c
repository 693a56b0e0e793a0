/* SPDX-License-Identifier: MIT
 *
 * paceline strategies: the ways to divide the work, with their options.
 */
#include <stdio.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "train/strategy.h"

struct args {
    bool json;
};

static json_t *options_of(const struct train_strategy *strategy)
{
    json_t *list = json_array();

    for (size_t i = 0; i < base_options_count(strategy->options); i++) {
        const struct base_option *o = &strategy->options[i];
        char *text = base_option_text(o, strategy->defaults);

        json_array_append_new(list, json_pack("{s:s, s:s?, s:s?, s:s}", "name", o->name, "argument",
                                              o->argument, "default", text, "help", o->help));
        base_free(text);
    }
    return list;
}

static base_status print_json(void)
{
    json_t *list = json_array(), *object;
    base_status st;

    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *s = train_strategy_registry[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", s->name, "help",
                                              s->help, "commit_unit", s->commit_unit, "alone",
                                              s->alone, "options", options_of(s)));
    }
    object = json_pack("{s:i, s:o}", "schema", 1, "strategies", list);
    st = base_json_print(object);
    json_decref(object);
    return st;
}

static void print_text(void)
{
    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *s = train_strategy_registry[i];

        printf("%s%-16s %s; a lost worker costs at most a %s\n", i > 0 ? "\n" : "", s->name,
               s->help, s->commit_unit);
        for (size_t j = 0; j < base_options_count(s->options); j++) {
            const struct base_option *o = &s->options[j];
            char *text = base_option_text(o, s->defaults);

            printf("    %s=%s%*s %s [%s]\n", o->name, o->argument != NULL ? o->argument : "",
                   (int)(18 - snprintf(NULL, 0, "%s=%s", o->name,
                                       o->argument != NULL ? o->argument : "")),
                   "", o->help, text != NULL ? text : "");
            base_free(text);
        }
    }
}

static base_status run(void *args, const struct cli_positional *positional)
{
    const struct args *a = args;

    (void)positional;
    if (a->json)
        return print_json();
    print_text();
    return BASE_OK;
}

static const struct base_option options[] = {
    {"json", NULL, BASE_FLAG, offsetof(struct args, json), 0, 0,
     "one JSON object on standard output", true},
    {0},
};

const struct cli_command cli_command_strategies = {
    .name = "strategies",
    .help = "the ways to divide the work, with their options",
    .usage = "paceline strategies [--json]",
    .examples = "  paceline strategies\n"
                "  paceline train --model vgg11 --data cifar10 --workers 2 "
                "--strategy ddp:bucket=4M\n",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){0},
    .run = run,
};
