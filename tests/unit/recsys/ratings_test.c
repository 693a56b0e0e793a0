/* SPDX-License-Identifier: MIT
 *
 * Ratings from text: every format, ids of every kind, scales, lines that are bad, pairs that come
 * again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/statistics.h"
#include "support/texts.h"

/* ---- formats ---- */

static void test_formats(void **state)
{
    static const char *const want = "3 7 4.5 100000007;3 9 1 100000009;12 7 3 100000001;";

    (void)state;
    texts_hold(texts_open("userId,movieId,rating,timestamp\n12,7,3.0,100000001\n3,7,4.5,100000007\n"
                          "3,9,1.0,100000009\n"),
               "csv", want);
    texts_hold(texts_open("\xef\xbb\xbfrating;Time;x;User-ID;ISBN\r\n3;100000001;?;12;7\r\n"
                          "4.5;100000007;\"a;b\";3;7\r\n\r\n1;100000009;;3;9"),
               "csv", want);
    texts_hold(texts_open("12::7::3::100000001\n3::7::4.5::100000007\n3::9::1::100000009\n"), "dat",
               want);
    texts_hold(texts_open("12\t7\t3\t100000001\n3\t7\t4.5\t100000007\n3\t9\t1\t100000009"), "tab",
               want);
    texts_hold(texts_open("7:\n12,3,2005-09-06\n3,5,2005-09-07\n9:\n3,1,2000-01-01\n"), "netflix",
               "3 7 5 1126051200;3 9 1 946684800;12 7 3 1125964800;");
    texts_hold(texts_open("12::7::3\n3::7::4.5\n"), "dat", "3 7 4.5;12 7 3;");
}

static void test_columns(void **state)
{
    struct recsys_options options = {.columns = "item,-,user,rating", .no_cache = true};

    (void)state;
    texts_put("c.txt", "7|x|ann|2\n9|y|bob|5\n");
    texts_hold(texts_open_with("c.txt", &options), "columns", "ann 7 2;bob 9 5;");
    texts_put("c.txt", "what - who how\n7   x ann\t2\n9 y bob 5\n");
    texts_hold(texts_open_with("c.txt", &options), "columns", "ann 7 2;bob 9 5;");
    options.columns = "user,item";
    options.separator = "=>";
    texts_put("c.txt", "ann=>7\nbob=>9\n");
    texts_hold(texts_open_with("c.txt", &options), "columns", "ann 7 1;bob 9 1;");
    texts_fail("a,b\n", &(struct recsys_options){.columns = "user,rating"},
               "must name user and item");
    texts_fail("a,b\n", &(struct recsys_options){.columns = "user,item,user"}, "twice");
    texts_fail("a,b\n", &(struct recsys_options){.columns = "user,item,rating"}, "not 3 fields");
    texts_fail("a,b\n", &(struct recsys_options){.columns = "user,item", .separator = ""},
               "--separator must be");
}

static void test_folders(void **state)
{
    struct recsys_options options = {.no_cache = true};
    char *path = base_format("%s/netflix", texts_folder);

    (void)state;
    texts_put("netflix/training_set/mv_0000002.txt", "2:\n5,4,2005-01-01\n");
    texts_put("netflix/training_set/mv_0000001.txt", "1:\n5,3,2005-01-01\n6,1,2005-01-02\n");
    texts_put("netflix/training_set/readme", "no ratings\n");
    texts_hold(texts_open_with("netflix", &options), "netflix",
               "5 1 3 1104537600;5 2 4 1104537600;6 1 1 1104624000;");
    assert_true(recsys_is_ratings(path));
    texts_put("ml/ratings.csv", "userId,movieId,rating\n1,1,5\n");
    texts_put("ml/movies.csv", "movieId,title\n1,One\n");
    texts_hold(texts_open_with("ml", &options), "csv", "1 1 5;");
    texts_put("nothing/x.csv", "a,b\n");
    base_free(path);
    path = base_format("%s/nothing", texts_folder);
    assert_false(recsys_is_ratings(path));
    base_free(path);
}

static void test_not_ratings(void **state)
{
    const struct recsys_options options = {.no_cache = true};

    (void)state;
    texts_fail("", &options, "is empty");
    texts_fail("a,b,c\n1,2,3\n", &options, "no known format");
    texts_fail("1\t2\t3\t4\n", &options, "no known format"); /* the last column is no time */
    texts_fail("user,item,rating\n", &options, "has no ratings");
    texts_fail("user,item,rating\n1,2,x\n1,3\n1,4,5\n", &options,
               "2 of 4 lines are no ratings; the first, line 2 of ");
    texts_fail("9:\n1,2\n", &options, "no known format");
}

/* ---- ids and values ---- */

static void test_ids(void **state)
{
    struct recsys_ratings *r =
        texts_open("user,item,rating\n10,b\xc3\xa9\x62,1\n9,a,2\n268435455,b,3\n");
    struct recsys_id text;
    uint32_t number;

    (void)state;
    assert_true(r->users == 3 && r->items == 3);
    assert_non_null(r->user_ids.number);
    assert_null(r->item_ids.number);
    assert_true(recsys_id_find(&r->user_ids, "10", &number) && number == 1);
    assert_true(recsys_id_find(&r->user_ids, "268435455", &number) && number == 2);
    assert_false(recsys_id_find(&r->user_ids, "010", &number));
    assert_false(recsys_id_find(&r->user_ids, "11", &number));
    assert_true(recsys_id_find(&r->item_ids, "b", &number) && number == 1);
    assert_false(recsys_id_find(&r->item_ids, "", &number));
    assert_string_equal(recsys_id_text(&r->item_ids, 2, &text), "b\xc3\xa9\x62");
    assert_string_equal(recsys_id_text(&r->user_ids, 0, &text), "9");
    recsys_ratings_close(r);
    /* Numbers that do not fit, or that are written in two ways, are texts. */
    texts_hold(texts_open("user,item,rating\n007,4294967296,1\n7,1,2\n"), "csv",
               "007 4294967296 1;7 1 2;");
}

static void test_scales(void **state)
{
    struct base_str text = {0};
    struct recsys_ratings *r = texts_open("user,item,rating\n1,1,-3\n1,2,7\n2,1,4.5\n");

    (void)state;
    assert_true(r->scale.levels == 3 && r->scale.step == 2.5f && r->scale.lowest == -3 &&
                r->scale.highest == 7 && r->by_user.code != NULL && r->by_user.value == NULL);
    recsys_ratings_close(r);
    r = texts_open("user,item,rating\n1,1,0.33333\n1,2,0.5\n2,1,1\n");
    assert_true(r->scale.levels == 3 && r->scale.step == 0);
    recsys_ratings_close(r);
    base_str_add(&text, "user,item,rating\n");
    for (int i = 0; i < 300; i++)
        base_str_add(&text, "%d,%d,%.2f\n", i % 7, i, -1 + i * 0.01);
    r = texts_open(text.text);
    assert_true(r->scale.levels == 0 && r->by_user.code == NULL && r->count == 300);
    assert_true(r->scale.lowest == -1 && r->scale.highest == 1.99f && r->scale.step == 0.01f);
    assert_true(recsys_value(&r->scale, &r->by_user, 0) == -1);
    recsys_ratings_close(r);
    base_str_fini(&text);
}

/* More values than codes, as far apart as floats can be. */
static void test_far_apart(void **state)
{
    struct base_str text = {0};
    struct recsys_statistics s;
    struct recsys_ratings *r;

    (void)state;
    base_str_add(&text, "user,item,rating\n1,1,-3.4e38\n1,2,3.4e38\n");
    for (int i = 0; i < 300; i++)
        base_str_add(&text, "%d,%d,%d\n", 2 + i % 7, i, i);
    r = texts_open(text.text);
    assert_int_equal(recsys_statistics(r, &s), BASE_OK);
    assert_int_equal(s.counts, RECSYS_VALUE_BINS);
    assert_int_equal(s.count[0], 1);
    assert_int_equal(s.count[RECSYS_VALUE_BINS / 2], 300);
    assert_int_equal(s.count[RECSYS_VALUE_BINS - 1], 1);
    recsys_ratings_close(r);
    base_str_fini(&text);
}

/* ---- faults ---- */

static void test_faults(void **state)
{
    static const char *const text = "user,item,rating,time\n"
                                    "1,1,5,10\n"
                                    "1,2\n"
                                    "1,2,nan,10\n"
                                    "1,2,4,soon\n"
                                    ",2,4,10\n"
                                    "1,\xff,4,10\n"
                                    "\n"
                                    "2,1,4,10\n"
                                    "1,1,3,9\n"
                                    "\"1,2,4,10\n"
                                    "2,2,4,10\n2,3,4,10\n2,4,4,10\n2,5,4,10\n1,1,2,8\n";
    struct recsys_ratings *r = texts_open(text);
    static const char *const told[] = {"line 3: it has 2 fields between ',', not 4",
                                       "line 4: the rating 'nan' is not a number",
                                       "line 5: the time 'soon' is neither",
                                       "line 6: the user's id ''",
                                       "line 7: the item's id '?'",
                                       "line 11: a quote is not closed",
                                       "line 16: user 1 rates item 1 again; the last"};

    (void)state;
    assert_int_equal(r->faults.bad_lines, 6);
    assert_int_equal(r->faults.duplicates, 2);
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strstr(r->faults.examples, told[i]) == NULL)
            fail_msg("'%s' is not in %s", told[i], r->faults.examples);
    base_log_level(BASE_QUIET);
    recsys_warn(r);
    texts_hold(r, "csv", "1 1 2 8;2 1 4 10;2 2 4 10;2 3 4 10;2 4 4 10;2 5 4 10;");
    texts_fail(text, &(struct recsys_options){.no_cache = true, .strict = true},
               "6 bad lines and 2 duplicates, which --strict refuses; ");
    texts_fail("user,item,rating\n1,1,1\n1,1,2\n",
               &(struct recsys_options){.no_cache = true, .strict = true},
               "line 3: user 1 rates item 1");
}

static void test_headings(void **state)
{
    struct recsys_ratings *r =
        texts_open("1:\n1,3,2005-01-01\nx:\n2,3,2005-01-01\n3:\n3,4,2005-01-01\n4,4,2005-01-01\n");

    (void)state;
    assert_int_equal(r->faults.bad_lines, 2); /* the heading, and the rating below it */
    texts_hold(r, "netflix", "1 1 3 1104537600;3 3 4 1104537600;4 3 4 1104537600;");
}

/* The fuzz targets open such a file, whose path leads nowhere. */
static void test_no_name(void **state)
{
    static const char text[] = "user,item,rating\n1,1,5\n1,2,4\n2,1,3\n";
    const int fd = memfd_create("text", 0);
    char *path = base_format("/proc/self/fd/%d", fd);
    struct recsys_ratings *r = NULL;

    (void)state;
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(
        recsys_ratings_open(path, &(struct recsys_options){.threads = 1, .no_cache = true}, &r),
        BASE_OK);
    assert_int_equal(r->count, 3);
    recsys_ratings_close(r);
    base_free(path);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),   cmocka_unit_test(test_columns),
        cmocka_unit_test(test_folders),   cmocka_unit_test(test_not_ratings),
        cmocka_unit_test(test_ids),       cmocka_unit_test(test_scales),
        cmocka_unit_test(test_far_apart), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_headings),  cmocka_unit_test(test_no_name),
    };

    return cmocka_run_group_tests(tests, texts_set_up, texts_tear_down);
}
