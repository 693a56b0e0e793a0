/* SPDX-License-Identifier: MIT
 *
 * JSON: what is refused, look-ups that name the key, text that is not UTF-8.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

static json_t *parsed(const char *text)
{
    json_t *value = NULL;

    if (base_json_parse(text, strlen(text), &value) != BASE_OK)
        fail_msg("%s", base_message());
    return value;
}

static void test_parse_refuses(void **state)
{
    static const char *const bad[] = {
        "", "{", "{\"a\":1,}", "{\"a\":1} x", "{\"a\":1,\"a\":2}", "{'a':1}", "\"\xff\"", "[1,2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *value = json_null();

        assert_int_equal(base_json_parse(bad[i], strlen(bad[i]), &value), BASE_ERR_DATA);
        assert_null(value);
        assert_int_equal(strncmp(base_message(), "not valid JSON, line 1: ", 24), 0);
    }
}

static void test_load_names_the_file(void **state)
{
    char path[] = "/tmp/paceline-json-XXXXXX";
    int fd = mkstemp(path);
    json_t *value = NULL;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\"a\":", 5), 5);
    assert_int_equal(base_json_load(path, 100, &value), BASE_ERR_DATA);
    assert_int_equal(strncmp(base_message(), path, strlen(path)), 0);
    assert_int_equal(write(fd, "1}", 2), 2);
    assert_int_equal(base_json_load(path, 6, &value), BASE_ERR_DATA); /* one byte too many */
    assert_int_equal(base_json_load(path, 7, &value), BASE_OK);
    json_decref(value);
    close(fd);
    unlink(path);
    assert_int_equal(base_json_load(path, 100, &value), BASE_ERR_IO);
    assert_null(value);
}

static void test_look_ups(void **state)
{
    json_t *object =
        parsed("{\"s\":\"t\",\"i\":-3,\"r\":2.5,\"o\":{\"x\":1},\"l\":[1],\"n\":null}");
    const char *text = NULL;
    int64_t whole = 0;
    double real = 0;
    json_t *inner = NULL;

    (void)state;
    assert_int_equal(base_json_string(object, "s", &text), BASE_OK);
    assert_string_equal(text, "t");
    assert_int_equal(base_json_integer(object, "i", &whole), BASE_OK);
    assert_int_equal(whole, -3);
    assert_int_equal(base_json_real(object, "r", &real), BASE_OK);
    assert_true(real == 2.5);
    assert_int_equal(base_json_real(object, "i", &real), BASE_OK); /* a whole number is one too */
    assert_true(real == -3);
    assert_int_equal(base_json_object(object, "o", &inner), BASE_OK);
    assert_int_equal(json_object_size(inner), 1);
    assert_int_equal(base_json_array(object, "l", &inner), BASE_OK);
    assert_int_equal(json_array_size(inner), 1);

    assert_int_equal(base_json_string(object, "i", &text), BASE_ERR_DATA);
    assert_string_equal(base_message(), "\"i\" is of the wrong type, a string expected");
    assert_int_equal(base_json_integer(object, "r", &whole), BASE_ERR_DATA);
    assert_int_equal(base_json_integer(object, "n", &whole), BASE_ERR_DATA);
    assert_int_equal(base_json_real(object, "s", &real), BASE_ERR_DATA);
    assert_int_equal(base_json_object(object, "l", &inner), BASE_ERR_DATA);
    assert_int_equal(base_json_array(object, "o", &inner), BASE_ERR_DATA);
    assert_int_equal(base_json_array(object, "absent", &inner), BASE_ERR_DATA);
    assert_string_equal(base_message(), "\"absent\" is missing, a list expected");
    assert_null(inner);
    json_decref(object);
}

static void test_look_up_in_no_object(void **state)
{
    json_t *list = parsed("[1]");
    const char *text = "";

    (void)state;
    assert_int_equal(base_json_string(list, "a", &text), BASE_ERR_DATA);
    assert_int_equal(base_json_string(NULL, "a", &text), BASE_ERR_DATA);
    assert_null(text);
    json_decref(list);
}

static void test_text(void **state)
{
    json_t *good = base_json_text("gr\u00fcn \u2026"), *bad = base_json_text("a\xff\xc3");

    (void)state;
    assert_string_equal(json_string_value(good), "gr\u00fcn \u2026");
    assert_string_equal(json_string_value(bad), "a??");
    assert_true(base_is_utf8("gr\u00fcn"));
    assert_false(base_is_utf8("a\xff"));
    assert_false(base_is_utf8("cut \xe2\x80"));
    json_decref(good);
    json_decref(bad);
}

static void test_number(void **state)
{
    json_t *nan = base_json_number((double)NAN), *infinite = base_json_number((double)INFINITY);
    json_t *half = base_json_number(0.5);

    (void)state;
    assert_true(json_is_null(nan));
    assert_true(json_is_null(infinite));
    assert_true(json_real_value(half) == 0.5);
    json_decref(nan);
    json_decref(infinite);
    json_decref(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_refuses), cmocka_unit_test(test_load_names_the_file),
        cmocka_unit_test(test_look_ups),      cmocka_unit_test(test_look_up_in_no_object),
        cmocka_unit_test(test_text),          cmocka_unit_test(test_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
