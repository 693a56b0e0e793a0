/* SPDX-License-Identifier: MIT
 *
 * Options: text and JSON to fields and back, ranges, names, tables in tables, wrong types.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"

enum colour { RED, BLUE };

struct inner {
    int64_t speed;
};

struct settings {
    bool flip, quiet;
    int64_t batch, any;
    double lr;
    const char *run;
    struct base_texts record;
    enum colour colour;
    const char *format, *kernels;
    struct {
        int64_t size;
        struct inner inner;
    } outer;
};

struct plug_in {
    const char *name;
};
static const struct plug_in idx = {"idx"}, png = {"png"};
static const struct plug_in *const registry[] = {&idx, &png, NULL};

static const struct base_option inner_options[] = {
    {.name = "speed", .alias = "velocity", .kind = BASE_INT, .max = 10, .help = "of the inner one"},
    {0},
};

#define OUTER_AT(field) (offsetof(struct settings, outer.field) - offsetof(struct settings, outer))
static const struct base_option outer_options[] = {
    {.name = "size", .kind = BASE_SIZE, .offset = OUTER_AT(size), .help = "of the outer one"},
    {.table = inner_options, .offset = OUTER_AT(inner)},
    {0},
};

#define AT(field) offsetof(struct settings, field)
/* clang-format off */
static const struct base_option options[] = {
    {.name = "flip", .kind = BASE_FLAG, .offset = AT(flip),
     .help = "mirror"},
    {.name = "batch-size", .argument = "N", .kind = BASE_INT, .offset = AT(batch), .min = 1,
     .max = 100, .help = "samples"},
    {.name = "any", .argument = "N", .kind = BASE_INT, .offset = AT(any),
     .help = "any whole number"},
    {.name = "lr", .argument = "X", .kind = BASE_REAL, .offset = AT(lr), .max = 10,
     .help = "rate"},
    {.name = "run", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(run),
     .help = "name"},
    {.name = "record", .argument = "LAYER", .kind = BASE_TEXTS, .offset = AT(record),
     .help = "layers"},
    {.name = "colour", .kind = BASE_ENUM, .offset = AT(colour),
     .names = (const char *const[]){[RED] = "red", [BLUE] = "blue", NULL}, .help = "of it"},
    {.name = "format", .kind = BASE_NAME, .offset = AT(format), .registry = registry,
     .help = "of files"},
    {.name = "kernels", .kind = BASE_NAME, .offset = AT(kernels),
     .names = (const char *const[]){"auto", NULL}, .registry = registry, .help = "to take"},
    {.table = outer_options, .offset = AT(outer)},
    {.name = "quiet", .kind = BASE_FLAG, .offset = AT(quiet),
     .help = "say less", .local = true},
    {0},
};
/* clang-format on */

static base_status set(struct settings *s, const char *name, const char *text)
{
    struct base_option row;

    assert_true(base_option_find(options, name, strlen(name), &row) >= 0);
    return base_option_set(&row, "--", text, s);
}

static int find(const struct base_option *table, const char *name)
{
    struct base_option row;

    return base_option_find(table, name, strcspn(name, "="), &row);
}

static void test_find(void **state)
{
    struct base_option row;

    (void)state;
    assert_int_equal(base_options_count(options), 12);
    assert_int_equal(base_options_count(NULL), 0);
    assert_false(base_option_at(NULL, 0, &row));
    assert_int_equal(find(options, "batch-size"), 1);
    assert_int_equal(find(options, "batch_size=3"), 1);
    assert_int_equal(find(options, "batch"), -1);
    assert_int_equal(find(options, ""), -1);
}

/* Rows of tables inside tables stand where the table stands, at their place in the outer struct. */
static void test_tables_in_tables(void **state)
{
    static const char *const names[] = {"flip",    "batch-size", "any",    "lr",
                                        "run",     "record",     "colour", "format",
                                        "kernels", "size",       "speed",  "quiet"};
    struct settings s = {0};
    struct base_option row;
    size_t i = 0;

    (void)state;
    for (; base_option_at(options, i, &row); i++)
        assert_string_equal(row.name, names[i]);
    assert_int_equal(i, sizeof names / sizeof names[0]);
    assert_int_equal(set(&s, "speed", "7"), BASE_OK);
    assert_int_equal(set(&s, "velocity", "8"), BASE_OK);
    assert_int_equal(set(&s, "size", "2K"), BASE_OK);
    assert_int_equal(set(&s, "quiet", "on"), BASE_OK);
    assert_true(s.outer.inner.speed == 8 && s.outer.size == 2048 && s.quiet);
    assert_int_equal(set(&s, "speed", "11"), BASE_ERR_USAGE);
    assert_int_equal(find(inner_options, "size"), -1);
}

/* No number of rows is too large. */
static void test_many_rows(void **state)
{
    enum { ROWS = 300 };
    static struct base_option table[ROWS + 1];
    static char names[ROWS][8];
    bool values[ROWS] = {false};
    struct base_option row;

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "o%zu", i);
        table[i] = (struct base_option){.name = names[i], .kind = BASE_FLAG, .offset = i};
    }
    assert_int_equal(base_options_count(table), ROWS);
    assert_int_equal(base_option_find(table, "o299", 4, &row), 299);
    assert_int_equal(base_option_set(&row, "--", "on", values), BASE_OK);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(values[i], i == 299);
    assert_int_equal(base_option_find(table, "o300", 4, &row), -1);
}

static void test_names(void **state)
{
    struct settings s = {0};
    struct base_option row;

    (void)state;
    assert_int_equal(set(&s, "colour", "blue"), BASE_OK);
    assert_int_equal(s.colour, BLUE);
    assert_int_equal(set(&s, "colour", "red"), BASE_OK);
    assert_int_equal(s.colour, RED);
    assert_int_equal(set(&s, "format", "idx"), BASE_OK);
    assert_string_equal(s.format, "idx");
    assert_int_equal(set(&s, "kernels", "auto"), BASE_OK);
    assert_int_equal(set(&s, "kernels", "png"), BASE_OK);
    assert_string_equal(s.kernels, "png");
    assert_true(base_option_find(options, "kernels", 7, &row) >= 0);
    assert_string_equal(base_option_choice(&row, 0), "auto");
    assert_string_equal(base_option_choice(&row, 2), "png");
    assert_null(base_option_choice(&row, 3));
    assert_true(base_option_find(options, "run", 3, &row) >= 0);
    assert_null(base_option_choice(&row, 0));
}

/* The message lists what is known and suggests the nearest; the field stays as it was. */
static void test_names_refuse(void **state)
{
    static const char *const bad[][3] = {
        {"colour", "bleu", "did you mean 'blue'? (known: red, blue)"},
        {"colour", "1", "unknown colour '1'; known: red, blue"},
        {"colour", "", "known: red, blue"},
        {"colour", "red,blue", "known: red, blue"},
        {"format", "auto", "unknown format 'auto'; known: idx, png"},
        {"kernels", "pnj", "did you mean 'png'? (known: auto, idx, png)"},
    };
    struct settings s = {.colour = BLUE, .format = "idx", .kernels = "auto"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(set(&s, bad[i][0], bad[i][1]), BASE_ERR_USAGE);
        assert_non_null(strstr(base_message(), bad[i][2]));
    }
    assert_int_equal(s.colour, BLUE);
    assert_string_equal(s.format, "idx");
    assert_string_equal(s.kernels, "auto");
}

static void test_set(void **state)
{
    struct settings s = {0};

    (void)state;
    assert_int_equal(set(&s, "flip", "true"), BASE_OK);
    assert_int_equal(set(&s, "batch-size", "100"), BASE_OK);
    assert_int_equal(set(&s, "any", "-9223372036854775808"), BASE_OK);
    assert_int_equal(set(&s, "lr", "1e-3"), BASE_OK);
    assert_int_equal(set(&s, "run", "x"), BASE_OK);
    assert_int_equal(set(&s, "record", "a"), BASE_OK);
    assert_int_equal(set(&s, "record", "b"), BASE_OK);
    assert_true(s.flip && s.batch == 100 && s.any == INT64_MIN && s.lr == 1e-3);
    assert_string_equal(s.run, "x");
    assert_int_equal(s.record.count, 2);
    assert_string_equal(s.record.at[1], "b");
    for (int i = 2; i < BASE_MAX_TEXTS; i++)
        assert_int_equal(set(&s, "record", "c"), BASE_OK);
    assert_int_equal(set(&s, "record", "one too many"), BASE_ERR_USAGE);
}

static void test_set_refuses(void **state)
{
    static const char *const bad[][2] = {
        {"batch-size", "0"}, {"batch-size", "101"}, {"batch-size", "3.5"},
        {"batch-size", ""},  {"batch-size", "12x"}, {"any", "9223372036854775808"},
        {"lr", "10.1"},      {"lr", "-1"},          {"lr", "nan"},
        {"lr", "inf"},       {"lr", "fast"},        {"flip", "yes"},
        {"flip", ""},        {"flip", "On"},
    };
    struct settings s = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(set(&s, bad[i][0], bad[i][1]), BASE_ERR_USAGE);
        assert_ptr_equal(strstr(base_message(), "--"), base_message());
        assert_ptr_equal(strstr(base_message(), bad[i][0]), base_message() + 2);
    }
}

static void test_flags(void **state)
{
    static const struct {
        const char *text;
        bool on;
    } good[] = {{"on", true}, {"off", false}, {"true", true}, {"false", false}};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct settings s = {.flip = !good[i].on};

        assert_int_equal(set(&s, "flip", good[i].text), BASE_OK);
        assert_int_equal(s.flip, good[i].on);
    }
}

/* A message calls the option what it is called where it stands. */
static void test_marks(void **state)
{
    struct settings s = {0};

    (void)state;
    assert_int_equal(base_option_set(&options[0], "--", "x", &s), BASE_ERR_USAGE);
    assert_string_equal(base_message(), "--flip takes on or off, not 'x'");
    assert_int_equal(base_option_set(&options[0], "", "x", &s), BASE_ERR_USAGE);
    assert_string_equal(base_message(), "flip takes on or off, not 'x'");
}

struct plugged {
    int64_t number;
    bool flag;
    const char *text;
};

static void test_parse_a_plugins_options(void **state)
{
    static const struct base_option table[] = {
        {.name = "number",
         .argument = "N",
         .kind = BASE_INT,
         .offset = offsetof(struct plugged, number),
         .max = 9},
        {.name = "flag", .kind = BASE_FLAG, .offset = offsetof(struct plugged, flag)},
        {.name = "text",
         .argument = "T",
         .kind = BASE_TEXT,
         .offset = offsetof(struct plugged, text)},
        {0},
    };
    static const char *const bad[][2] = {{"x:lamp=1", "kind x has no option 'lamp'"},
                                         {"x:number", "kind x: number takes a value, number=N"},
                                         {"x:number=10", "kind x: number"}};
    const struct plugged defaults = {.number = 3};
    struct plugged *settings;
    void *made;

    (void)state;
    assert_int_equal(base_options_parse(table, "kind", "x", &defaults, sizeof defaults, "x", &made),
                     BASE_OK);
    settings = made;
    assert_int_equal(settings->number, 3);
    base_free(made);
    assert_int_equal(base_options_parse(table, "kind", "x", &defaults, sizeof defaults,
                                        "x:flag,text=a:b,number=4", &made),
                     BASE_OK);
    settings = made;
    assert_int_equal(settings->number, 4);
    assert_true(settings->flag);
    assert_string_equal(settings->text, "a:b");
    base_free(made);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(
            base_options_parse(table, "kind", "x", NULL, sizeof defaults, bad[i][0], &made),
            BASE_ERR_USAGE);
        assert_null(made);
        assert_non_null(strstr(base_message(), bad[i][1]));
    }
}

static void test_json_there_and_back(void **state)
{
    struct settings s = {.flip = true,
                         .quiet = true,
                         .batch = 7,
                         .lr = 0.1,
                         .run = "r",
                         .record = {.at = {"fc1"}, .count = 1},
                         .colour = BLUE,
                         .kernels = "png",
                         .outer.inner.speed = 9};
    struct settings back = {0};
    json_t *object = base_options_to_json(options, &s);

    (void)state;
    assert_null(json_object_get(object, "quiet")); /* local */
    assert_string_equal(json_string_value(json_object_get(object, "colour")), "blue");
    assert_true(json_is_null(json_object_get(object, "format")));
    assert_int_equal(base_options_from_json(options, object, &back), BASE_OK);
    assert_true(back.flip && !back.quiet && back.batch == 7 && back.lr == 0.1);
    assert_string_equal(back.run, "r");
    assert_int_equal(back.record.count, 1);
    assert_string_equal(back.record.at[0], "fc1");
    assert_int_equal(back.colour, BLUE);
    assert_null(back.format);
    assert_string_equal(back.kernels, "png");
    assert_int_equal(back.outer.inner.speed, 9);
    json_decref(object);
}

static void test_json_refuses(void **state)
{
    static const char *const bad[] = {
        "{\"batch-size\":\"7\"}",
        "{\"batch-size\":0}",
        "{\"batch-size\":1.5}",
        "{\"lr\":\"x\"}",
        "{\"lr\":11}",
        "{\"flip\":1}",
        "{\"run\":3}",
        "{\"record\":\"a\"}",
        "{\"record\":[1]}",
        "{\"quiet\":true}",
        "{\"batch\":3}",
        "{\"colour\":1}",
        "{\"colour\":null}",
        "{\"colour\":\"green\"}",
        "{\"format\":\"bmp\"}",
        "{\"kernels\":true}",
        "{\"speed\":11}",
        "{\"outer\":{\"size\":1}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct settings s = {.batch = 1};
        json_t *object = NULL;

        assert_int_equal(base_json_parse(bad[i], strlen(bad[i]), &object), BASE_OK);
        assert_int_equal(base_options_from_json(options, object, &s), BASE_ERR_DATA);
        json_decref(object);
    }
}

static void test_text(void **state)
{
    static const char *const want[] = {"on",   "7",   "0",  "0.1", NULL, NULL,
                                       "blue", "png", NULL, "2K",  "0",  "off"};
    struct settings s = {.flip = true,
                         .batch = 7,
                         .lr = 0.1,
                         .colour = BLUE,
                         .format = "png",
                         .outer.size = 2048},
                    copy = {0};
    struct base_option row;

    (void)state;
    for (size_t i = 0; base_option_at(options, i, &row); i++) {
        char *text = base_option_text(&row, &s);

        if (want[i] == NULL)
            assert_null(text);
        else
            assert_string_equal(text, want[i]);
        base_free(text);
    }
    base_option_copy(&options[1], &s, &copy);
    assert_true(copy.batch == 7 && !copy.flip && copy.lr == 0);
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text, *back;
        int64_t bytes;
    } good[] = {{"65537", "65537", 65537},
                {"64K", "64K", 65536},
                {"2M", "2M", 2 << 20},
                {"0.5M", "512K", 1 << 19},
                {"1G", "1024M", 1 << 30}};
    static const char *const bad[] = {"", "M", "2MB", "2T", "-1", "nan", "1e30", "8G"};
    const struct base_option size = {.name = "bucket", .kind = BASE_SIZE, .min = 1, .max = 4e9};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t bytes = 0;
        char *text;

        assert_int_equal(base_option_set(&size, "", good[i].text, &bytes), BASE_OK);
        assert_int_equal(bytes, good[i].bytes);
        text = base_option_text(&size, &bytes);
        assert_string_equal(text, good[i].back);
        base_free(text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t bytes = 0;

        assert_int_equal(base_option_set(&size, "", bad[i], &bytes), BASE_ERR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_refuses),
        cmocka_unit_test(test_parse_a_plugins_options),
        cmocka_unit_test(test_json_there_and_back),
        cmocka_unit_test(test_json_refuses),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_tables_in_tables),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_refuse),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
