/* SPDX-License-Identifier: MIT
 *
 * A secret from a file or the environment, and files that are refused.
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
#include "base/secret.h"
#include "support/datafiles.h"

static const char variable[] = "PACELINE_TEST_SECRET";

static void find(const char *path, const char *text)
{
    char found_text[8];
    bool found = false;

    assert_int_equal(base_secret_find(path, variable, found_text, sizeof found_text, &found),
                     BASE_OK);
    assert_int_equal(found, text != NULL);
    assert_string_equal(found_text, text != NULL ? text : "");
    assert_null(getenv(variable));
}

static void refuse(const char *path, const char *words)
{
    char text[8];
    bool found = true;

    setenv(variable, "other", 1);
    assert_int_equal(base_secret_find(path, variable, text, sizeof text, &found), BASE_ERR_USAGE);
    assert_false(found);
    assert_non_null(strstr(base_message(), words));
    assert_null(getenv(variable)); /* it is no second choice, and shows no longer */
}

static void test_find(void **state)
{
    char *folder = support_scratch(), *path = base_format("%s/token", folder);

    (void)state;
    find(NULL, NULL);
    setenv(variable, "mine", 1);
    find(NULL, "mine");
    setenv(variable, "much too long", 1);
    find(NULL, "much to"); /* which the caller refuses */
    assert_int_equal(base_file_replace(path, "line\n", 5), BASE_OK);
    assert_int_equal(chmod(path, 0600), 0);
    setenv(variable, "other", 1);
    find(path, "line");
    assert_int_equal(base_file_replace(path, "much too long\n", 14), BASE_OK);
    assert_int_equal(chmod(path, 0600), 0);
    find(path, "much to");
    assert_int_equal(chmod(path, 0604), 0);
    refuse(path, "chmod 600");
    refuse(folder, "not a file");
    refuse("/nowhere/token", "`paceline token /nowhere/token` makes one");
    support_scratch_free(folder);
    base_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
