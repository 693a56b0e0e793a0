/* SPDX-License-Identifier: MIT
 *
 * The command line of a made-up command: spellings that are the same, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "cli/cli.h"

struct args {
    int64_t log_every;
    double lr;
    bool flip;
    const char *name;
    struct base_texts record;
};

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "log-every", .argument = "N", .kind = BASE_INT, .offset = AT(log_every), .max = 100,
     .help = ""},
    {.name = "lr", .argument = "X", .kind = BASE_REAL, .offset = AT(lr),
     .help = ""},
    {.name = "flip", .kind = BASE_FLAG, .offset = AT(flip),
     .help = ""},
    {.name = "name", .alias = "n", .argument = "T", .kind = BASE_TEXT, .offset = AT(name),
     .help = ""},
    {.name = "record", .argument = "L", .kind = BASE_TEXTS, .offset = AT(record),
     .help = ""},
    {0},
};
/* clang-format on */

static const struct cli_command command = {
    .name = "try",
    .usage = "try WHAT",
    .options = options,
    .min_positional = 1,
    .max_positional = 2,
};

/* Parses words up to NULL, over what an earlier call left. */
static base_status parse(struct args *args, struct cli_positional *positional, ...)
{
    char *argv[16];
    int argc = 0;
    bool help = false;
    va_list words;

    va_start(words, positional);
    while ((argv[argc] = va_arg(words, char *)) != NULL)
        argc++;
    va_end(words);
    *args = (struct args){.log_every = 20};
    cli_positional_fini(positional);
    return cli_parse(&command, argc, argv, args, positional, &help);
}

static void test_spellings(void **state)
{
    struct cli_positional p = {0};
    struct args a;

    (void)state;
    assert_int_equal(parse(&a, &p, "x", "--log-every", "5", NULL), BASE_OK);
    assert_int_equal(a.log_every, 5);
    assert_true(cli_given(&p, "log-every") && cli_given(&p, "log_every"));
    assert_false(cli_given(&p, "lr") || cli_given(&p, "nothing"));
    assert_int_equal(parse(&a, &p, "--log_every=6", "x", NULL), BASE_OK);
    assert_int_equal(a.log_every, 6);
    assert_int_equal(parse(&a, &p, "x", "--flip", "--lr", "-1e-3", NULL), BASE_OK);
    assert_true(a.flip && a.lr == -1e-3);
    assert_int_equal(parse(&a, &p, "x", "--flip", "--no-flip", NULL), BASE_OK);
    assert_false(a.flip);
    assert_int_equal(parse(&a, &p, "x", "--record", "a", "--record=b", NULL), BASE_OK);
    assert_int_equal(a.record.count, 2);
    assert_string_equal(a.record.at[1], "b");
    assert_int_equal(parse(&a, &p, "--", "--name", NULL), BASE_OK);
    assert_string_equal(p.at[0], "--name");
    assert_int_equal(parse(&a, &p, "-", "--name=", NULL), BASE_OK);
    assert_string_equal(a.name, "");
    assert_int_equal(parse(&a, &p, "-n", "t", "x", NULL), BASE_OK);
    assert_string_equal(a.name, "t");
    assert_string_equal(p.at[0], "x");
    cli_positional_fini(&p);
}

/* Files of a shell's pattern. */
static void test_many_arguments(void **state)
{
    enum { MANY = 5000 };
    static char *argv[MANY];
    const struct cli_command many = {.name = "many", .max_positional = MANY};
    struct cli_positional p = {0};
    bool help;

    (void)state;
    for (int i = 0; i < MANY; i++)
        argv[i] = i == 4321 ? "this" : "that";
    assert_int_equal(cli_parse(&many, MANY, argv, NULL, &p, &help), BASE_OK);
    assert_int_equal(p.count, MANY);
    assert_string_equal(p.at[4321], "this");
    cli_positional_fini(&p);
}

/* A table of any length, with one inside: what was given is known of every row. */
static void test_many_options(void **state)
{
    enum { ROWS = 200 };
    static struct base_option table[ROWS + 2];
    static char names[ROWS][8];
    const struct cli_command many = {.name = "many", .options = table};
    struct {
        bool on[ROWS];
        struct args args;
    } settings = {0};
    struct cli_positional p = {0};
    bool help;

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "o%zu", i);
        table[i] = (struct base_option){.name = names[i], .kind = BASE_FLAG, .offset = i};
    }
    table[ROWS] = (struct base_option){
        .table = options, .offset = (size_t)((char *)&settings.args - (char *)&settings)};
    assert_int_equal(cli_parse(&many, 5,
                               (char *[]){"--o63", "--o199", "--no-o64", "--record", "fc1"},
                               &settings, &p, &help),
                     BASE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(cli_given(&p, names[i]), i == 63 || i == 64 || i == 199);
        assert_int_equal(settings.on[i], i == 63 || i == 199);
    }
    assert_true(cli_given(&p, "record") && !cli_given(&p, "lr"));
    assert_string_equal(settings.args.record.at[0], "fc1");
    cli_positional_fini(&p);
    assert_int_equal(cli_parse(&many, 1, (char *[]){"--recrd=x"}, &settings, &p, &help),
                     BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "did you mean --record?"));
    cli_positional_fini(&p);
}

static void test_refused(void **state)
{
    struct cli_positional p = {0};
    struct args a;

    (void)state;
    assert_int_equal(parse(&a, &p, "x", "--log-evry", "5", NULL), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "did you mean --log-every?"));
    assert_int_equal(parse(&a, &p, "x", "--zzzzzz", NULL), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "--help"));
    assert_int_equal(parse(&a, &p, "x", "--log-every", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "--log-every", "5x", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "--log-every", "101", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "--log-every", "99999999999999999999", NULL),
                     BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "--lr", "nan", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "--flip=maybe", NULL), BASE_ERR_USAGE);
    assert_string_equal(base_message(), "--flip takes on or off, not 'maybe'");
    assert_int_equal(parse(&a, &p, "x", "--no-name", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "-l", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "-n", NULL), BASE_ERR_USAGE);
    assert_string_equal(base_message(), "--name needs a value: --name T");
    assert_int_equal(parse(&a, &p, "x", "-nt", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "y", "z", NULL), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "'z' is one argument too many"));
    cli_positional_fini(&p);
}

/* Every command of the program has what --help shows. */
static void test_commands(void **state)
{
    (void)state;
    assert_true(cli_command_count >= 7);
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *c = cli_command_registry[i];

        assert_true(c->name && c->help && c->usage && c->run);
        assert_true(c->hidden || c->examples);
        assert_true(base_options_count(c->options) == 0 || (c->defaults && c->args_size > 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),      cmocka_unit_test(test_many_options),
        cmocka_unit_test(test_many_arguments), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
