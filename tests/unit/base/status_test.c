/* SPDX-License-Identifier: MIT
 *
 * The kept message: codes, prefixes, truncation, one per thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/status.h"

static void test_fail_keeps_one_sentence(void **state)
{
    (void)state;
    assert_string_equal(base_message(), "");
    assert_int_equal(base_fail(BASE_ERR_DATA, "line %d is %s", 3, "bad"), BASE_ERR_DATA);
    assert_string_equal(base_message(), "line 3 is bad");
    errno = ENOENT;
    assert_int_equal(base_fail(BASE_ERR_IO, "cannot open %s: %m", "x"), BASE_ERR_IO);
    assert_string_equal(base_message(), "cannot open x: No such file or directory");
}

static void test_prefix(void **state)
{
    (void)state;
    base_ignore(base_fail(BASE_ERR_DATA, "ends too early"));
    assert_int_equal(base_prefix(BASE_ERR_DATA, "file %s", "a.idx"), BASE_ERR_DATA);
    assert_string_equal(base_message(), "file a.idx: ends too early");
    assert_int_equal(base_prefix(BASE_OK, "file b"), BASE_OK); /* nothing failed: says nothing */
    assert_string_equal(base_message(), "file a.idx: ends too early");
}

static void test_long_message_is_cut(void **state)
{
    char text[5000];
    size_t kept;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    base_ignore(base_fail(BASE_ERR_DATA, "%s", text));
    kept = strlen(base_message());
    assert_in_range(kept, 500, sizeof text - 2);
    base_ignore(base_prefix(BASE_ERR_DATA, "p"));
    assert_int_equal(strncmp(base_message(), "p: xxx", 6), 0);
    assert_int_equal(strlen(base_message()), kept);
    base_ignore(base_prefix(BASE_ERR_DATA, "%s", text)); /* no room for what follows */
    assert_int_equal(strlen(base_message()), kept);
}

static void *fail_elsewhere(void *argument)
{
    (void)argument;
    base_ignore(base_fail(BASE_ERR_IO, "another thread's"));
    return NULL;
}

static void test_message_is_per_thread(void **state)
{
    pthread_t thread;

    (void)state;
    base_ignore(base_fail(BASE_ERR_IO, "mine"));
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(base_message(), "mine");
}

static base_status jumps(base_status given, int *reached_p)
{
    base_status st = BASE_OK;

    TRY(given);
    *reached_p = 1;
out:
    return st;
}

static void test_try(void **state)
{
    int reached = 0;

    (void)state;
    assert_int_equal(jumps(BASE_ERR_MODEL, &reached), BASE_ERR_MODEL);
    assert_int_equal(reached, 0);
    assert_int_equal(jumps(BASE_OK, &reached), BASE_OK);
    assert_int_equal(reached, 1);
}

static void test_codes(void **state)
{
    (void)state;
    for (int code = BASE_OK; code <= BASE_ERR_INTERNAL; code++) {
        assert_non_null(base_code_name((base_code)code));
        assert_int_equal(base_exit_code((base_code)code), code == BASE_OK          ? 0
                                                          : code == BASE_ERR_USAGE ? 2
                                                                                   : 1);
    }
    assert_string_equal(base_code_name(BASE_ERR_USAGE), "usage");
    assert_string_equal(base_code_name(BASE_ERR_INTERNAL), "internal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_keeps_one_sentence),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long_message_is_cut),
        cmocka_unit_test(test_message_is_per_thread),
        cmocka_unit_test(test_try),
        cmocka_unit_test(test_codes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
