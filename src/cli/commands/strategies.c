/* SPDX-License-Identifier: MIT
 *
 * paceline strategies: the ways to divide the work and to make one update of several, with their
 * options.
 */
#include <stdio.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "train/aggregator.h"
#include "train/attack.h"
#include "train/strategy.h"

struct args {
    bool json;
};

static json_t *cmd_strategies_options_of(const struct base_option *options, const void *defaults)
{
    json_t *list = json_array();
    struct base_option row;

    for (size_t i = 0; base_option_at(options, i, &row); i++) {
        char *text = base_option_text(&row, defaults), *help = cli_help_option(&row);

        json_array_append_new(list,
                              json_pack("{s:s, s:s?, s:s?, s:s}", "name", row.name, "argument",
                                        row.argument, "default", text, "help", help));
        base_free(text);
        base_free(help);
    }
    return list;
}

static json_t *cmd_strategies_tasks_of(const struct train_strategy *strategy)
{
    json_t *list = json_array();

    for (size_t i = 0; i < train_task_count; i++)
        if (train_strategy_fits(strategy, train_task_registry[i]))
            json_array_append_new(list, json_string(train_task_registry[i]->name));
    return list;
}

/* Texts of options that are worth a try; tests run all of them. */
static json_t *cmd_strategies_examples_of(const char *const *examples)
{
    json_t *list = json_array();

    for (size_t i = 0; examples != NULL && examples[i] != NULL; i++)
        json_array_append_new(list, json_string(examples[i]));
    return list;
}

static json_t *cmd_strategies_aggregators_json(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < train_aggregator_count; i++) {
        const struct train_aggregator *a = train_aggregator_registry[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "name", a->name, "help",
                                              a->help, "options",
                                              cmd_strategies_options_of(a->options, a->defaults),
                                              "examples", cmd_strategies_examples_of(a->examples)));
    }
    return list;
}

static json_t *cmd_strategies_attacks_json(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < train_attack_count; i++) {
        const struct train_attack *a = train_attack_registry[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:s?, s:f}", "name", a->name, "help",
                                              a->help, "unit", a->unit, "strength", a->strength));
    }
    return list;
}

static json_t *cmd_strategies_choice_json(bool several)
{
    struct train_choice choice = train_strategy_auto(train_task_of(NULL), NULL, several);

    return json_pack("{s:s, s:s}", "strategy", choice.strategy, "why", choice.why);
}

static base_status cmd_strategies_print_json(void)
{
    json_t *list = json_array(), *object;
    base_status st;

    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *s = train_strategy_registry[i];

        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:o}", "name", s->name,
                                        "help", s->help, "commit_unit", s->commit_unit, "alone",
                                        s->alone, "tasks", cmd_strategies_tasks_of(s), "options",
                                        cmd_strategies_options_of(s->options, s->defaults),
                                        "examples", cmd_strategies_examples_of(s->examples)));
    }
    object = json_pack("{s:i, s:o, s:{s:o, s:o}, s:o, s:o}", "schema", 1, "strategies", list,
                       TRAIN_AUTO, "one", cmd_strategies_choice_json(false), "several",
                       cmd_strategies_choice_json(true), "aggregators",
                       cmd_strategies_aggregators_json(), "attacks", cmd_strategies_attacks_json());
    st = base_json_print(object);
    json_decref(object);
    return st;
}

static void cmd_strategies_print_choices(void)
{
    const struct train_task *task = train_task_of(NULL);
    struct train_choice one = train_strategy_auto(task, NULL, false),
                        several = train_strategy_auto(task, NULL, true);

    printf("\n%-16s what train takes where no other is asked for:\n", TRAIN_AUTO);
    printf("    one worker         %s: %s\n", one.strategy, one.why);
    printf("    several            %s: %s\n", several.strategy, several.why);
    printf(
        "    too little memory  is refused with the figures, and with the strategies that fit\n");
}

static void cmd_strategies_print_options(const struct base_option *options, const void *defaults)
{
    struct base_option row;

    for (size_t i = 0; base_option_at(options, i, &row); i++) {
        char *text = base_option_text(&row, defaults), *help = cli_help_option(&row);
        char *name = base_format("%s%s%s", row.name, row.argument != NULL ? "=" : "",
                                 row.argument != NULL ? row.argument : "");

        printf("    %-18s %s [%s]\n", name, help, text != NULL ? text : "");
        base_free(name);
        base_free(text);
        base_free(help);
    }
}

static void cmd_strategies_print_text(void)
{
    for (size_t i = 0; i < train_strategy_count; i++) {
        const struct train_strategy *s = train_strategy_registry[i];

        printf("%s%-16s %s; the most that a lost worker can cost: %s\n", i > 0 ? "\n" : "", s->name,
               s->help, s->commit_unit);
        cmd_strategies_print_options(s->options, s->defaults);
    }
    cmd_strategies_print_choices();
    printf("\n--aggregate, where workers' updates become one:\n");
    for (size_t i = 0; i < train_aggregator_count; i++) {
        const struct train_aggregator *a = train_aggregator_registry[i];

        printf("%-17s %s\n", a->name, a->help);
        cmd_strategies_print_options(a->options, a->defaults);
    }
    printf("\n--attack, what workers can be made to do to measure that:\n");
    for (size_t i = 0; i < train_attack_count; i++) {
        const struct train_attack *a = train_attack_registry[i];

        printf("%-17s %s", a->name, a->help);
        if (a->unit != NULL)
            printf("; =X: %s [%g]", a->unit, a->strength);
        printf("\n");
    }
}

static base_status cmd_strategies(void *args, const struct cli_positional *positional)
{
    const struct args *a = args;

    (void)positional;
    if (a->json)
        return cmd_strategies_print_json();
    cmd_strategies_print_text();
    return BASE_OK;
}

static const struct base_option options[] = {
    {.name = "json",
     .kind = BASE_FLAG,
     .offset = offsetof(struct args, json),
     .help = "one JSON object on standard output",
     .local = true},
    {0},
};

const struct cli_command cli_command_strategies = {
    .name = "strategies",
    .help = "the ways to divide the work and to aggregate updates, with their options",
    .usage = "paceline strategies [--json]",
    .examples = "  paceline strategies\n"
                "  paceline train --model vgg11 --data cifar10 --workers 2 "
                "--strategy ddp:bucket=4M\n",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){0},
    .run = cmd_strategies,
};
