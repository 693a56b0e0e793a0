/* SPDX-License-Identifier: MIT
 *
 * Forms in parts as curl and browsers send them, and broken ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "http/multipart.h"

static const char type[] = "multipart/form-data; boundary=XyZ";
static const char form[] = "--XyZ\r\n"
                           "Content-Disposition: form-data; name=\"note\"\r\n\r\n"
                           "hello\r\n"
                           "--XyZ\r\n"
                           "Content-Disposition: form-data; name=\"data\"; filename=\"a.png\"\r\n"
                           "Content-Type: image/png\r\n\r\n"
                           "\0\1\r\n--Xy\xff\r\n"
                           "--XyZ--\r\n";

static void test_find(void **state)
{
    struct http_part part;

    (void)state;
    assert_int_equal(http_multipart_find(type, form, sizeof form - 1, "data", &part), BASE_OK);
    assert_string_equal(part.name, "data");
    assert_string_equal(part.type, "image/png");
    assert_int_equal(part.count, 9);
    assert_memory_equal(part.bytes, "\0\1\r\n--Xy\xff", 9);
    assert_int_equal(http_multipart_find(type, form, sizeof form - 1, "note", &part), BASE_OK);
    assert_int_equal(part.count, 5);
    assert_string_equal(part.type, "");
    /* no such field: the first */
    assert_int_equal(http_multipart_find(type, form, sizeof form - 1, "image", &part), BASE_OK);
    assert_string_equal(part.name, "note");
}

static void test_boundary(void **state)
{
    static const char quoted[] = "Multipart/Form-Data; charset=x; boundary=\"a b\"; more=1";
    static const char body[] = "preamble\r\n--a b\r\n\r\nbytes\r\n--a b--";
    struct http_part part;

    (void)state;
    assert_true(http_is_multipart(quoted));
    assert_false(http_is_multipart("image/png"));
    assert_false(http_is_multipart(NULL));
    assert_int_equal(http_multipart_find(quoted, body, sizeof body - 1, "data", &part), BASE_OK);
    assert_string_equal(part.name, "");
    assert_int_equal(part.count, 5);
}

static void test_cut(void **state)
{
    struct http_part part;

    (void)state;
    /* The field is found as soon as its end has been seen; cut before that, the form is broken. */
    for (size_t count = 0; count < sizeof form - 1 - 4; count++)
        assert_int_equal(http_multipart_find(type, form, count, "data", &part), BASE_ERR_DATA);
}

static void test_refused(void **state)
{
    static const char *const types[] = {
        "multipart/form-data",
        "multipart/form-data; boundary=", "multipart/form-data; boundary=\"open",
        "multipart/form-data; "
        "boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const char none[] = "--XyZ--\r\n", glued[] = "--XyZabc\r\n\r\nx\r\n--XyZ--";
    struct http_part part;

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_int_equal(http_multipart_find(types[i], form, sizeof form - 1, "data", &part),
                         BASE_ERR_DATA);
    assert_int_equal(http_multipart_find(type, none, sizeof none - 1, "data", &part),
                     BASE_ERR_DATA);
    assert_int_equal(http_multipart_find(type, glued, sizeof glued - 1, "data", &part),
                     BASE_ERR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
