/* SPDX-License-Identifier: MIT
 *
 * Options: text and JSON to fields and back, ranges, wrong types.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/option.h"

struct settings {
    bool flip, quiet;
    int64_t batch, any;
    double lr;
    const char *run;
    struct base_texts record;
};

#define AT(field) offsetof(struct settings, field)
static const struct base_option options[] = {
    {"flip", NULL, BASE_FLAG, AT(flip), 0, 0, "mirror", false},
    {"batch-size", "N", BASE_INT, AT(batch), 1, 100, "samples", false},
    {"any", "N", BASE_INT, AT(any), 0, 0, "any whole number", false},
    {"lr", "X", BASE_REAL, AT(lr), 0, 10, "rate", false},
    {"run", "NAME", BASE_TEXT, AT(run), 0, 0, "name", false},
    {"record", "LAYER", BASE_TEXTS, AT(record), 0, 0, "layers", false},
    {"quiet", NULL, BASE_FLAG, AT(quiet), 0, 0, "say less", true},
    {0},
};

static base_status set(struct settings *s, const char *name, const char *text)
{
    int index = base_option_find(options, name, strlen(name));

    assert_in_range(index, 0, 6);
    return base_option_set(&options[index], s, text);
}

static void test_find(void **state)
{
    (void)state;
    assert_int_equal(base_options_count(options), 7);
    assert_int_equal(base_options_count(NULL), 0);
    assert_int_equal(base_option_find(options, "batch-size", 10), 1);
    assert_int_equal(base_option_find(options, "batch_size=3", 10), 1);
    assert_int_equal(base_option_find(options, "batch", 5), -1);
    assert_int_equal(base_option_find(options, "", 0), -1);
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
    };
    struct settings s = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(set(&s, bad[i][0], bad[i][1]), BASE_ERR_USAGE);
        assert_non_null(strstr(base_message(), bad[i][0]));
    }
}

static void test_json_there_and_back(void **state)
{
    struct settings s = {.flip = true,
                         .quiet = true,
                         .batch = 7,
                         .lr = 0.1,
                         .run = "r",
                         .record = {.at = {"fc1"}, .count = 1}};
    struct settings back = {0};
    json_t *object = base_options_to_json(options, &s);

    (void)state;
    assert_null(json_object_get(object, "quiet")); /* local */
    assert_int_equal(base_options_from_json(options, object, &back), BASE_OK);
    assert_true(back.flip && !back.quiet && back.batch == 7 && back.lr == 0.1);
    assert_string_equal(back.run, "r");
    assert_int_equal(back.record.count, 1);
    assert_string_equal(back.record.at[0], "fc1");
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
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct settings s = {.batch = 1};
        json_t *object = NULL;

        assert_int_equal(base_json_parse(bad[i], strlen(bad[i]), &object), BASE_OK);
        assert_int_not_equal(base_options_from_json(options, object, &s), BASE_OK);
        json_decref(object);
    }
}

static void test_text(void **state)
{
    static const char *const want[] = {"on", "7", "0", "0.1", NULL, NULL, "off"};
    struct settings s = {.flip = true, .batch = 7, .lr = 0.1}, copy = {0};

    (void)state;
    for (int i = 0; i < 7; i++) {
        char *text = base_option_text(&options[i], &s);

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
    const struct base_option size = {"bucket", "BYTES", BASE_SIZE, 0, 1, 4e9, "bytes", false};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t bytes = 0;
        char *text;

        assert_int_equal(base_option_set(&size, &bytes, good[i].text), BASE_OK);
        assert_int_equal(bytes, good[i].bytes);
        text = base_option_text(&size, &bytes);
        assert_string_equal(text, good[i].back);
        base_free(text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t bytes = 0;

        assert_int_equal(base_option_set(&size, &bytes, bad[i]), BASE_ERR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),         cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_refuses),  cmocka_unit_test(test_json_there_and_back),
        cmocka_unit_test(test_json_refuses), cmocka_unit_test(test_text),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
