/* SPDX-License-Identifier: MIT
 *
 * Targets of requests: split first, decoded afterwards; and those that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/str.h"
#include "http/uri.h"

static void test_path(void **state)
{
    struct http_uri uri;

    (void)state;
    assert_int_equal(http_uri_parse("/models/my%20model/a%2Fb/", &uri), BASE_OK);
    assert_int_equal(uri.segment_count, 3);
    assert_string_equal(uri.segments[0], "models");
    assert_string_equal(uri.segments[1], "my model");
    assert_string_equal(uri.segments[2], "a/b"); /* an encoded slash does not split */
    http_uri_fini(&uri);
    assert_int_equal(http_uri_parse("/", &uri), BASE_OK);
    assert_int_equal(uri.segment_count, 0);
    http_uri_fini(&uri);
    assert_int_equal(http_uri_parse("//ping", &uri), BASE_OK);
    assert_int_equal(uri.segment_count, 2);
    assert_string_equal(uri.segments[0], "");
    http_uri_fini(&uri);
}

static void test_query(void **state)
{
    struct http_uri uri;

    (void)state;
    assert_int_equal(http_uri_parse("/m?a=1&b=x+y%26z&name[]=q&flag&&a=2&e%3Dq=%3F&empty=", &uri),
                     BASE_OK);
    assert_string_equal(http_uri_parameter(&uri, "a", 0), "1");
    assert_string_equal(http_uri_parameter(&uri, "a", 1), "2");
    assert_null(http_uri_parameter(&uri, "a", 2));
    assert_string_equal(http_uri_parameter(&uri, "b", 0), "x y&z");
    assert_string_equal(http_uri_parameter(&uri, "name[]", 0), "q");
    assert_string_equal(http_uri_parameter(&uri, "flag", 0), "");
    assert_string_equal(http_uri_parameter(&uri, "e=q", 0), "?");
    assert_string_equal(http_uri_parameter(&uri, "empty", 0), "");
    assert_null(http_uri_parameter(&uri, "none", 0));
    http_uri_fini(&uri);
}

static void test_refused(void **state)
{
    static const char *const targets[] = {
        "",      "x",       "http://host/x", "/a/../b", "/..",    "/a/%2e%2e/b",
        "/.",    "/%zz",    "/%4",           "/%",      "/a%00b", "/a%0d%0ab",
        "/\x01", "/?a=%0a", "/?%=1",         "/?a=%1",  "*",
    };
    struct base_str many = {0};
    struct http_uri uri;

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        assert_int_equal(http_uri_parse(targets[i], &uri), BASE_ERR_DATA);
        assert_null(uri.text);
    }
    for (int i = 0; i <= HTTP_MAX_SEGMENTS; i++)
        base_str_add(&many, "/a");
    assert_int_equal(http_uri_parse(many.text, &uri), BASE_ERR_DATA);
    base_str_fini(&many);
    base_str_add(&many, "/?");
    for (int i = 0; i <= HTTP_MAX_PARAMETERS; i++)
        base_str_add(&many, "a=1&");
    assert_int_equal(http_uri_parse(many.text, &uri), BASE_ERR_DATA);
    base_str_fini(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
