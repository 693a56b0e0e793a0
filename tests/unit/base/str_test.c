/* SPDX-License-Identifier: MIT
 *
 * Growing strings, the nearest known name, plug-ins by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"

static const char *const names[] = {"conv", "bn", "relu", "maxpool", "avgpool", "dense"};
enum { NAMES = sizeof names / sizeof names[0] };

static void test_grows(void **state)
{
    struct base_str s = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        base_str_add(&s, "%03d,", i);
    assert_int_equal(s.length, 4000);
    assert_int_equal(strlen(s.text), 4000);
    assert_memory_equal(s.text + 4 * 777, "777,", 4);
    base_str_append(&s, "a\0b", 3); /* bytes, not text */
    assert_int_equal(s.length, 4003);
    assert_memory_equal(s.text + 4000, "a\0b", 4);
    base_str_fini(&s);
    assert_null(s.text);
    base_str_fini(&s);
}

static void assert_column(const char *text, int width, const char *expected)
{
    struct base_str s = {0};

    base_str_column(&s, text, width);
    assert_string_equal(s.text, expected);
    base_str_fini(&s);
}

static void test_columns(void **state)
{
    (void)state;
    assert_column("cat", 5, "  cat");
    assert_column("cat", -5, "cat  ");
    assert_column("catfish", 4, "catf");
    assert_column("", -2, "  ");
    assert_column("\u00e9\u00e9\u00e9", 4, " \u00e9\u00e9\u00e9");
    assert_column("\u00e9\u00e9\u00e9", -2, "\u00e9\u00e9"); /* never within a character */
    assert_column("e\u0301a", -3, "e\u0301a ");         /* a mark over a letter takes no place */
    assert_column("\u732b\u72ac", -5, "\u732b\u72ac "); /* these take two */
    assert_column("\u732b\u72ac", -3, "\u732b ");
    assert_column("\U0001f431x", 4, " \U0001f431x");
    assert_column("a\xff\xc3", -4,
                  "a\xff\xc3 "); /* not UTF-8: byte by byte, and not past the end */
}

static void test_take(void **state)
{
    struct base_str s = {0};
    char *text = base_str_take(&s);

    (void)state;
    assert_string_equal(text, ""); /* nothing was added */
    base_free(text);
    base_str_add(&s, "%s", "kept");
    text = base_str_take(&s);
    assert_string_equal(text, "kept");
    assert_null(s.text);
    base_free(text);
}

static void test_nearest(void **state)
{
    char far[200];

    (void)state;
    assert_int_equal(base_nearest("relu", names, NAMES), 2);
    assert_int_equal(base_nearest("rleu", names, NAMES), 2);
    assert_int_equal(base_nearest("maxpol", names, NAMES), 3);
    assert_int_equal(base_nearest("dence", names, NAMES), 5);
    assert_int_equal(base_nearest("transformer", names, NAMES), -1);
    assert_int_equal(base_nearest("relu", names, 0), -1);
    memset(far, 'r', sizeof far - 1);
    far[sizeof far - 1] = '\0';
    assert_int_equal(base_nearest(far, names, NAMES), -1);
}

static void test_unknown_says_what_is_known(void **state)
{
    (void)state;
    assert_int_equal(base_unknown(BASE_ERR_MODEL, "layer", "rleu", names, NAMES), BASE_ERR_MODEL);
    assert_string_equal(base_message(), "unknown layer 'rleu'; did you mean 'relu'? (known: conv, "
                                        "bn, relu, maxpool, avgpool, dense)");
    base_ignore(base_unknown(BASE_ERR_MODEL, "layer", "transformer", names, 2));
    assert_string_equal(base_message(), "unknown layer 'transformer'; known: conv, bn");
}

struct plug_in {
    const char *name;
    int value;
};

static void test_registry(void **state)
{
    static const struct plug_in one = {"one", 1}, two = {"two", 2};
    const struct plug_in *const registry[] = {&one, &two, NULL};
    const struct plug_in *found = &one;

    (void)state;
    assert_int_equal(base_registry_find("number", "two", registry, 2, &found), BASE_OK);
    assert_ptr_equal(found, &two);
    assert_ptr_equal(base_registry_get("one", registry, 2), &one);
    assert_null(base_registry_get("three", registry, 2));
    assert_int_equal(base_registry_find("number", "tow", registry, 2, &found), BASE_ERR_USAGE);
    assert_null(found);
    assert_non_null(strstr(base_message(), "did you mean 'two'?"));
    assert_int_equal(base_registry_find("number", "one", registry, 0, &found), BASE_ERR_USAGE);
}

static void test_scaled(void **state)
{
    (void)state;
    assert_string_equal(base_scaled(0).text, "0 ");
    assert_string_equal(base_scaled(820).text, "820 ");
    assert_string_equal(base_scaled(999.6).text, "1.00 k");
    assert_string_equal(base_scaled(95.2e6).text, "95.2 M");
    assert_string_equal(base_scaled(1.43e9).text, "1.43 G");
    assert_string_equal(base_scaled(574e9).text, "574 G");
    assert_string_equal(base_scaled(1e21).text, "1000000 P");
    assert_string_equal(base_plural(1), "");
    assert_string_equal(base_plural(0), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_unknown_says_what_is_known),
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_scaled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
