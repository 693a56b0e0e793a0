/* SPDX-License-Identifier: MIT
 *
 * Titles of items, from tables of several kinds and from what is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/titles.h"
#include "support/datafiles.h"

static const uint32_t numbers[] = {1, 5, 9};
static const struct recsys_ids items = {.count = 3, .number = numbers};

static base_status read_titles(const char *text, struct recsys_titles *titles)
{
    char *folder = support_scratch(), *path = base_format("%s/movies.csv", folder);
    base_status st;

    support_write(folder, "movies.csv", text, strlen(text));
    st = recsys_titles_open(path, &items, titles);
    base_free(path);
    support_scratch_free(folder);
    return st;
}

static void test_titles(void **state)
{
    struct recsys_titles t;

    (void)state;
    assert_int_equal(read_titles("movieId,title,genres\n1,\"Grand Day Out, A (1989)\",Comedy\n"
                                 "4,Unknown,x\n9,Amélie,y\n9,Again,y\n",
                                 &t),
                     BASE_OK);
    assert_int_equal(t.known, 2);
    assert_string_equal(t.title[0], "Grand Day Out, A (1989)");
    assert_null(t.title[1]);
    assert_string_equal(t.title[2], "Amélie");
    recsys_titles_close(&t);
    assert_int_equal(read_titles("name;id\nFive;5\n", &t), BASE_OK);
    assert_string_equal(t.title[1], "Five");
    recsys_titles_close(&t);
}

static void test_bad_titles(void **state)
{
    struct recsys_titles t;

    (void)state;
    base_log_level(BASE_QUIET);
    assert_int_equal(read_titles("", &t), BASE_ERR_DATA);
    assert_int_equal(read_titles("1,Toy Story\n", &t), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "names no column 'title' or 'name'"));
    assert_null(t.title);
    assert_int_equal(read_titles("movieId,title\n1\n\"5\"x,a\n9,Nine\n", &t), BASE_OK);
    assert_true(t.known == 1 && t.bad_lines == 2);
    recsys_titles_close(&t);
    assert_int_equal(recsys_titles_open("/nowhere/movies.csv", &items, &t), BASE_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_titles),
        cmocka_unit_test(test_bad_titles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
