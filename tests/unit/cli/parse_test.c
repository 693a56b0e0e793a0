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

static const struct base_option options[] = {
    {"log-every", "N", BASE_INT, AT(log_every), 0, 100, "", false},
    {"lr", "X", BASE_REAL, AT(lr), 0, 0, "", false},
    {"flip", NULL, BASE_FLAG, AT(flip), 0, 0, "", false},
    {"name", "T", BASE_TEXT, AT(name), 0, 0, "", false},
    {"record", "L", BASE_TEXTS, AT(record), 0, 0, "", false},
    {0},
};

static const struct cli_command command = {
    .name = "try",
    .usage = "try WHAT",
    .options = options,
    .min_positional = 1,
    .max_positional = 2,
};

/* Parses words up to NULL. */
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
    return cli_parse(&command, argc, argv, args, positional, &help);
}

static void test_spellings(void **state)
{
    struct cli_positional p;
    struct args a;

    (void)state;
    assert_int_equal(parse(&a, &p, "x", "--log-every", "5", NULL), BASE_OK);
    assert_int_equal(a.log_every, 5);
    assert_int_equal(p.given, 1);
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
}

static void test_refused(void **state)
{
    struct cli_positional p;
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
    assert_int_equal(parse(&a, &p, "x", "--no-name", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "-l", NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, NULL), BASE_ERR_USAGE);
    assert_int_equal(parse(&a, &p, "x", "y", "z", NULL), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "'z' is one argument too many"));
}

/* Every command of the program has what --help shows, and its options fit the bit set. */
static void test_commands(void **state)
{
    (void)state;
    assert_true(cli_command_count >= 7);
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *c = cli_command_registry[i];

        assert_true(c->name && c->help && c->usage && c->run);
        assert_true(c->hidden || c->examples);
        assert_true(base_options_count(c->options) <= BASE_MAX_OPTIONS);
        assert_true(base_options_count(c->options) == 0 || (c->defaults && c->args_size > 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
