/* SPDX-License-Identifier: MIT
 *
 * Numbers in JSON: what is counted and taken, what is refused, and how many may come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "serve/values.h"

static base_status parse(const char *text, json_t **document_p)
{
    return serve_values_parse(text, strlen(text), document_p);
}

static void test_takes(void **state)
{
    json_t *document;
    float values[4];
    size_t count;

    (void)state;
    assert_int_equal(parse("[[1, 2.5], [[-3]], 4]", &document), BASE_OK);
    assert_int_equal(serve_values_count(document, &count), BASE_OK);
    assert_int_equal(count, 4);
    assert_int_equal(serve_values_take(document, values), BASE_OK);
    assert_true(values[0] == 1 && values[1] == 2.5f && values[2] == -3 && values[3] == 4);
    json_decref(document);
}

static void test_refuses(void **state)
{
    static const char *const wrong[] = {"[1, \"2\"]", "[null]", "{\"a\": 1}", "[true]",
                                        "[[[[[[[[[1]]]]]]]]]"};
    json_t *document;
    float value;
    size_t count;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse(wrong[i], &document), BASE_OK);
        assert_int_equal(serve_values_count(document, &count), BASE_ERR_DATA);
        json_decref(document);
    }
    assert_int_equal(parse("[1, 2", &document), BASE_ERR_DATA);
    assert_null(document);
    assert_int_equal(parse("[1e300]", &document), BASE_OK);
    assert_int_equal(serve_values_take(document, &value), BASE_ERR_DATA);
    json_decref(document);
}

/* "[0,0,…,0]": as many values as may come, and one more. */
static void test_many(void **state)
{
    enum { MOST = (1 << 20) - 1 }; /* the array itself counts, too */
    json_t *document;
    size_t count;

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        size_t values = MOST + more, length = 2 * values + 1;
        char *text = base_calloc(length + 1, 1);

        for (size_t i = 0; i < values; i++)
            memcpy(text + 1 + 2 * i, "0,", 2);
        text[0] = '[';
        text[length - 1] = ']';
        assert_int_equal(serve_values_parse(text, length, &document),
                         more == 0 ? BASE_OK : BASE_ERR_DATA);
        if (more == 0) {
            assert_int_equal(serve_values_count(document, &count), BASE_OK);
            assert_int_equal(count, values);
        }
        json_decref(document);
        base_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
