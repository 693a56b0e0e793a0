/* SPDX-License-Identifier: MIT
 *
 * Tokens: text and back, files that only their owner reads, the environment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/secret.h"

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_text_and_back(void **state)
{
    struct comm_secret a, b, c;
    char token[COMM_TOKEN_TEXT];

    (void)state;
    assert_int_equal(comm_secret_new(&a), BASE_OK);
    assert_int_equal(comm_secret_new(&c), BASE_OK);
    assert_memory_not_equal(&a, &c, sizeof a);
    comm_secret_text(&a, token);
    assert_int_equal(strlen(token), 68);
    assert_int_equal(comm_secret_parse(token, &b), BASE_OK);
    assert_memory_equal(&a, &b, sizeof a);
}

static void test_bad_tokens(void **state)
{
    struct comm_secret secret;
    char token[COMM_TOKEN_TEXT], longer[COMM_TOKEN_TEXT + 1];

    (void)state;
    assert_int_equal(comm_secret_new(&secret), BASE_OK);
    comm_secret_text(&secret, token);
    snprintf(longer, sizeof longer, "%s0", token);
    assert_int_equal(comm_secret_parse(longer, &secret), BASE_ERR_USAGE);
    assert_int_equal(comm_secret_parse(token + 4, &secret), BASE_ERR_USAGE);
    assert_int_equal(comm_secret_parse("", &secret), BASE_ERR_USAGE);
    for (size_t i = 0; i < 68; i += 11) {
        char was = token[i];

        token[i] = 'G';
        assert_int_equal(comm_secret_parse(token, &secret), BASE_ERR_USAGE);
        assert_null(strstr(base_message(), token + 4)); /* never shown */
        token[i] = was;
    }
    token[67] = '\0';
    assert_int_equal(comm_secret_parse(token, &secret), BASE_ERR_USAGE);
}

static void test_files(void **state)
{
    const char *folder = *state;
    struct comm_secret a, b;
    struct stat about;
    char path[256];
    bool found;

    snprintf(path, sizeof path, "%s/token", folder);
    assert_int_equal(comm_secret_new(&a), BASE_OK);
    assert_int_equal(comm_secret_save(&a, path), BASE_OK);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(comm_secret_find(path, &b, &found), BASE_OK);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(comm_secret_save(&a, path), BASE_ERR_USAGE); /* never over an old one */
    for (unsigned mode = 0610; mode <= 0640; mode += 010) {
        assert_int_equal(chmod(path, mode), 0);
        assert_int_equal(comm_secret_find(path, &b, &found), BASE_ERR_USAGE);
        assert_non_null(strstr(base_message(), "chmod 600"));
    }
    assert_int_equal(comm_secret_find("/nowhere/token", &b, &found), BASE_ERR_USAGE);
    assert_int_equal(comm_secret_find(folder, &b, &found), BASE_ERR_USAGE);
    write_file(path, "", 0600);
    assert_int_equal(comm_secret_find(path, &b, &found), BASE_ERR_USAGE);
    write_file(path, "pl1-00\n", 0600);
    assert_int_equal(comm_secret_find(path, &b, &found), BASE_ERR_USAGE);
    assert_int_equal(unlink(path), 0);
}

static void test_find(void **state)
{
    const char *folder = *state;
    struct comm_secret a, b, c;
    char path[256], token[COMM_TOKEN_TEXT];
    bool found = true;

    snprintf(path, sizeof path, "%s/token", folder);
    unsetenv("PACELINE_TOKEN");
    assert_int_equal(comm_secret_find(NULL, &b, &found), BASE_OK);
    assert_false(found);
    assert_int_equal(comm_secret_new(&a), BASE_OK);
    comm_secret_text(&a, token);
    setenv("PACELINE_TOKEN", token, 1);
    assert_int_equal(comm_secret_find(NULL, &b, &found), BASE_OK);
    assert_true(found);
    assert_memory_equal(&a, &b, sizeof a);
    assert_null(getenv("PACELINE_TOKEN"));
    setenv("PACELINE_TOKEN", "wrong", 1);
    assert_int_equal(comm_secret_find(NULL, &b, &found), BASE_ERR_USAGE);
    assert_false(found);
    assert_non_null(strstr(base_message(), "PACELINE_TOKEN"));
    /* A file counts more than the environment, which is emptied all the same. */
    assert_int_equal(comm_secret_new(&c), BASE_OK);
    assert_int_equal(comm_secret_save(&c, path), BASE_OK);
    setenv("PACELINE_TOKEN", token, 1);
    assert_int_equal(comm_secret_find(path, &b, &found), BASE_OK);
    assert_true(found);
    assert_memory_equal(&c, &b, sizeof c);
    assert_null(getenv("PACELINE_TOKEN"));
    assert_int_equal(unlink(path), 0);
}

static int make_folder(void **state)
{
    static char folder[] = "/tmp/secret_test.XXXXXX";

    *state = mkdtemp(folder);
    return *state == NULL;
}

static int remove_folder(void **state)
{
    return rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_and_back),
        cmocka_unit_test(test_bad_tokens),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_find),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
