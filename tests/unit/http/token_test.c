/* SPDX-License-Identifier: MIT
 *
 * Tokens from files and the environment, and those that are refused without being shown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "http/token.h"
#include "support/datafiles.h"

static const char variable[] = "PACELINE_TEST_TOKEN";

static void write_token(const char *path, const char *text, mode_t mode)
{
    assert_int_equal(base_file_replace(path, text, strlen(text)), BASE_OK);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_file(void **state)
{
    char *folder = support_scratch(), *path = base_format("%s/token", folder), *token;

    (void)state;
    write_token(path, "0123456789abcdef\n", 0600);
    assert_int_equal(http_token_find(path, variable, &token), BASE_OK);
    assert_string_equal(token, "0123456789abcdef");
    base_free(token);
    write_token(path, "0123456789abcdef\n", 0640);
    assert_int_equal(http_token_find(path, variable, &token), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "chmod 600"));
    write_token(path, "short", 0600);
    assert_int_equal(http_token_find(path, variable, &token), BASE_ERR_USAGE);
    assert_null(strstr(base_message(), "short"));
    write_token(path, "two lines of it\nare none here", 0600);
    assert_int_equal(http_token_find(path, variable, &token), BASE_ERR_USAGE);
    assert_int_equal(http_token_find(folder, variable, &token), BASE_ERR_USAGE);
    assert_int_equal(http_token_find("/nowhere/token", variable, &token), BASE_ERR_USAGE);
    assert_null(token);
    assert_int_equal(base_remove_tree(folder), BASE_OK);
    base_free(path);
    base_free(folder);
}

static void test_environment(void **state)
{
    char *token;

    (void)state;
    assert_int_equal(http_token_find(NULL, variable, &token), BASE_OK);
    assert_null(token);
    setenv(variable, "fedcba9876543210", 1);
    assert_int_equal(http_token_find(NULL, variable, &token), BASE_OK);
    assert_string_equal(token, "fedcba9876543210");
    assert_null(getenv(variable));
    base_free(token);
    setenv(variable, "x", 1);
    assert_int_equal(http_token_find(NULL, variable, &token), BASE_ERR_USAGE);
    assert_null(getenv(variable));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
