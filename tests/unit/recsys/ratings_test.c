/* SPDX-License-Identifier: MIT
 *
 * Ratings from text: every format, ids of every kind, scales, lines that are bad, pairs that come
 * again; the same for any number of threads and across the borders of blocks; the cache: found,
 * made again when the text changes, and refused when it is damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/recsys_private.h"
#include "recsys/statistics.h"
#include "support/datafiles.h"

static char *folder;

static void put(const char *name, const char *text)
{
    support_write(folder, name, text, strlen(text));
}

static struct recsys_ratings *open_with(const char *name, const struct recsys_options *options)
{
    struct recsys_ratings *r;
    char *path = base_format("%s/%s", folder, name);
    base_status st = recsys_ratings_open(path, options, &r);

    if (st != BASE_OK)
        fail_msg("%s", base_message());
    base_free(path);
    return r;
}

static struct recsys_ratings *open_text(const char *text)
{
    put("ratings.txt", text);
    return open_with("ratings.txt", &(struct recsys_options){.no_cache = true});
}

static void fails(const char *text, const struct recsys_options *options, const char *message)
{
    struct recsys_ratings *r;
    char *path = base_format("%s/bad.txt", folder);

    put("bad.txt", text);
    assert_int_not_equal(recsys_ratings_open(path, options, &r), BASE_OK);
    assert_null(r);
    if (strstr(base_message(), message) == NULL)
        fail_msg("'%s' is not in '%s'", message, base_message());
    base_free(path);
}

/* All ratings as "user item value time;", users and items by id. */
static char *dump(const struct recsys_ratings *r)
{
    struct base_str s = {0};
    const struct recsys_rows *rows = &r->by_user;

    base_str_add(&s, "%s", "");
    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++) {
            struct recsys_id user, item;

            base_str_add(&s, "%s %s %g", recsys_id_text(&r->user_ids, u, &user),
                         recsys_id_text(&r->item_ids, rows->column[k], &item),
                         (double)recsys_value(&r->scale, rows, k));
            if (rows->time != NULL)
                base_str_add(&s, " %u", rows->time[k]);
            base_str_add(&s, ";");
        }
    return base_str_take(&s);
}

static void holds(struct recsys_ratings *r, const char *format, const char *want)
{
    char *found = dump(r);

    assert_string_equal(r->format, format);
    assert_string_equal(found, want);
    base_free(found);
    recsys_ratings_close(r);
}

/* ---- formats ---- */

static void test_formats(void **state)
{
    static const char *const want = "3 7 4.5 100000007;3 9 1 100000009;12 7 3 100000001;";

    (void)state;
    holds(open_text("userId,movieId,rating,timestamp\n12,7,3.0,100000001\n3,7,4.5,100000007\n"
                    "3,9,1.0,100000009\n"),
          "csv", want);
    holds(open_text("\xef\xbb\xbfrating;Time;x;User-ID;ISBN\r\n3;100000001;?;12;7\r\n"
                    "4.5;100000007;\"a;b\";3;7\r\n\r\n1;100000009;;3;9"),
          "csv", want);
    holds(open_text("12::7::3::100000001\n3::7::4.5::100000007\n3::9::1::100000009\n"), "dat",
          want);
    holds(open_text("12\t7\t3\t100000001\n3\t7\t4.5\t100000007\n3\t9\t1\t100000009"), "tab", want);
    holds(open_text("7:\n12,3,2005-09-06\n3,5,2005-09-07\n9:\n3,1,2000-01-01\n"), "netflix",
          "3 7 5 1126051200;3 9 1 946684800;12 7 3 1125964800;");
    holds(open_text("12::7::3\n3::7::4.5\n"), "dat", "3 7 4.5;12 7 3;");
}

static void test_columns(void **state)
{
    struct recsys_options options = {.columns = "item,-,user,rating", .no_cache = true};

    (void)state;
    put("c.txt", "7|x|ann|2\n9|y|bob|5\n");
    holds(open_with("c.txt", &options), "columns", "ann 7 2;bob 9 5;");
    put("c.txt", "what - who how\n7   x ann\t2\n9 y bob 5\n");
    holds(open_with("c.txt", &options), "columns", "ann 7 2;bob 9 5;");
    options.columns = "user,item";
    options.separator = "=>";
    put("c.txt", "ann=>7\nbob=>9\n");
    holds(open_with("c.txt", &options), "columns", "ann 7 1;bob 9 1;");
    fails("a,b\n", &(struct recsys_options){.columns = "user,rating"}, "must name user and item");
    fails("a,b\n", &(struct recsys_options){.columns = "user,item,user"}, "twice");
    fails("a,b\n", &(struct recsys_options){.columns = "user,item,rating"}, "not 3 fields");
    fails("a,b\n", &(struct recsys_options){.columns = "user,item", .separator = ""},
          "--separator must be");
}

static void test_folders(void **state)
{
    struct recsys_options options = {.no_cache = true};
    char *path = base_format("%s/netflix", folder);

    (void)state;
    put("netflix/training_set/mv_0000002.txt", "2:\n5,4,2005-01-01\n");
    put("netflix/training_set/mv_0000001.txt", "1:\n5,3,2005-01-01\n6,1,2005-01-02\n");
    put("netflix/training_set/readme", "no ratings\n");
    holds(open_with("netflix", &options), "netflix",
          "5 1 3 1104537600;5 2 4 1104537600;6 1 1 1104624000;");
    assert_true(recsys_is_ratings(path));
    put("ml/ratings.csv", "userId,movieId,rating\n1,1,5\n");
    put("ml/movies.csv", "movieId,title\n1,One\n");
    holds(open_with("ml", &options), "csv", "1 1 5;");
    put("nothing/x.csv", "a,b\n");
    base_free(path);
    path = base_format("%s/nothing", folder);
    assert_false(recsys_is_ratings(path));
    base_free(path);
}

static void test_not_ratings(void **state)
{
    const struct recsys_options options = {.no_cache = true};

    (void)state;
    fails("", &options, "is empty");
    fails("a,b,c\n1,2,3\n", &options, "no known format");
    fails("1\t2\t3\t4\n", &options, "no known format"); /* the last column is no time */
    fails("user,item,rating\n", &options, "has no ratings");
    fails("user,item,rating\n1,2,x\n1,3\n1,4,5\n", &options,
          "2 of 4 lines are no ratings; the first, line 2 of ");
    fails("9:\n1,2\n", &options, "no known format");
}

/* ---- ids and values ---- */

static void test_ids(void **state)
{
    struct recsys_ratings *r =
        open_text("user,item,rating\n10,b\xc3\xa9\x62,1\n9,a,2\n268435455,b,3\n");
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
    holds(open_text("user,item,rating\n007,4294967296,1\n7,1,2\n"), "csv",
          "007 4294967296 1;7 1 2;");
}

static void test_scales(void **state)
{
    struct base_str text = {0};
    struct recsys_ratings *r = open_text("user,item,rating\n1,1,-3\n1,2,7\n2,1,4.5\n");

    (void)state;
    assert_true(r->scale.levels == 3 && r->scale.step == 2.5f && r->scale.lowest == -3 &&
                r->scale.highest == 7 && r->by_user.code != NULL && r->by_user.value == NULL);
    recsys_ratings_close(r);
    r = open_text("user,item,rating\n1,1,0.33333\n1,2,0.5\n2,1,1\n");
    assert_true(r->scale.levels == 3 && r->scale.step == 0);
    recsys_ratings_close(r);
    base_str_add(&text, "user,item,rating\n");
    for (int i = 0; i < 300; i++)
        base_str_add(&text, "%d,%d,%.2f\n", i % 7, i, -1 + i * 0.01);
    r = open_text(text.text);
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
    r = open_text(text.text);
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
    struct recsys_ratings *r = open_text(text);
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
    holds(r, "csv", "1 1 2 8;2 1 4 10;2 2 4 10;2 3 4 10;2 4 4 10;2 5 4 10;");
    fails(text, &(struct recsys_options){.no_cache = true, .strict = true},
          "6 bad lines and 2 duplicates, which --strict refuses; ");
    fails("user,item,rating\n1,1,1\n1,1,2\n",
          &(struct recsys_options){.no_cache = true, .strict = true},
          "line 3: user 1 rates item 1");
}

static void test_headings(void **state)
{
    struct recsys_ratings *r =
        open_text("1:\n1,3,2005-01-01\nx:\n2,3,2005-01-01\n3:\n3,4,2005-01-01\n4,4,2005-01-01\n");

    (void)state;
    assert_int_equal(r->faults.bad_lines, 2); /* the heading, and the rating below it */
    holds(r, "netflix", "1 1 3 1104537600;3 3 4 1104537600;4 3 4 1104537600;");
}

/* ---- blocks and threads ---- */

/* A few megabytes in an order that no block has whole: lines of many lengths, some bad, some again.
 */
static char *large_text(bool netflix, size_t lines)
{
    struct base_str s = {0};

    base_str_add(&s, "%s", netflix ? "" : "userId,movieId,rating,timestamp\n");
    for (size_t i = 0; i < lines; i++) {
        uint32_t user = (uint32_t)(i * 2654435761u) % 5000, item = (uint32_t)(i / 7 % 900);

        if (netflix && i % 40000 == 0)
            base_str_add(&s, "%zu:\n", i / 40000 + 1);
        if (netflix)
            base_str_add(&s, "%u,%zu,200%zu-01-1%zu\n", user, i % 5 + 1, i % 6, i % 9);
        else
            base_str_add(&s, "%u,%u,%s%zu\n", user * 7919 % 100003, item,
                         i % 1000 == 999 ? "bad," : (i % 3 ? "4.5," : "3.0,"), i);
    }
    return base_str_take(&s);
}

static void same_for_threads(bool netflix)
{
    char *text = large_text(netflix, 250000);
    char digest[BASE_SHA256_HEX], *examples = NULL;
    uint64_t duplicates = 0;

    put("large.txt", text);
    for (int threads = 1; threads <= 4; threads++) {
        struct recsys_options options = {.threads = threads, .no_cache = true};
        struct recsys_ratings *r = open_with("large.txt", &options);

        assert_int_equal(r->count + r->faults.duplicates + r->faults.bad_lines, 250000);
        if (threads == 1) {
            strcpy(digest, r->digest);
            duplicates = r->faults.duplicates;
            examples = base_strdup(r->faults.examples);
            assert_true(duplicates > 0 && r->faults.bad_lines == (netflix ? 0 : 250));
        }
        assert_string_equal(digest, r->digest);
        assert_int_equal(duplicates, r->faults.duplicates);
        assert_string_equal(examples, r->faults.examples);
        recsys_ratings_close(r);
    }
    base_free(examples);
    base_free(text);
}

static void test_threads(void **state)
{
    (void)state;
    same_for_threads(false);
    same_for_threads(true);
}

/* A block that begins with ratings of the block before it may go on with any item, also 0. */
static void test_item_zero(void **state)
{
    struct base_str s = {0};
    struct recsys_ratings *r;
    uint32_t zero, five;

    (void)state;
    base_str_add(&s, "5:\n");
    for (int u = 0; u < 90000; u++)
        base_str_add(&s, "%d,3,2005-01-01\n", u);
    base_str_add(&s, "0:\n7,3,2005-01-01\n8,3,2005-01-01\n");
    assert_true(s.length > 3 << 19); /* a block and a half */
    r = open_text(s.text);
    assert_int_equal(r->items, 2);
    assert_true(recsys_id_find(&r->item_ids, "0", &zero) && zero == 0);
    assert_true(recsys_id_find(&r->item_ids, "5", &five) && five == 1);
    assert_int_equal(r->count, 90002);
    recsys_ratings_close(r);
    base_str_fini(&s);
}

/* The last rating of a pair counts, wherever its lines are: checked against a plain table. */
static void test_against_a_table(void **state)
{
    enum { USERS = 5000, ITEMS = 8 };
    char *text = large_text(true, 250000);
    uint8_t *table = base_calloc(USERS * ITEMS, 1);
    struct recsys_ratings *r;
    uint64_t count = 0;

    (void)state;
    for (size_t i = 0; i < 250000; i++)
        table[(uint32_t)(i * 2654435761u) % USERS * ITEMS + i / 40000] = (uint8_t)(i % 5 + 1);
    put("large.txt", text);
    r = open_with("large.txt", &(struct recsys_options){.threads = 2, .no_cache = true});
    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = r->by_user.start[u]; k < r->by_user.start[u + 1]; k++) {
            uint32_t user = r->user_ids.number[u];
            uint32_t item = r->item_ids.number[r->by_user.column[k]] - 1;

            assert_true(recsys_value(&r->scale, &r->by_user, k) == table[user * ITEMS + item]);
        }
    for (size_t i = 0; i < USERS * ITEMS; i++)
        count += table[i] > 0;
    assert_int_equal(count, r->count);
    recsys_ratings_close(r);
    base_free(table);
    base_free(text);
}

static void test_long_lines(void **state)
{
    struct base_str s = {0};
    struct recsys_ratings *r;

    (void)state;
    base_str_add(&s, "user,item,rating,note\n1,1,5,%0*d\n", RECSYS_MAX_LINE - 6, 0);
    base_str_add(&s, "1,2,5,%0*d\n2,1,5,x\n", 3 << 20, 0); /* longer than a block */
    base_str_add(&s, "2,2,5,y\n3,1,4,%0*d", RECSYS_MAX_LINE - 5, 0);
    r = open_text(s.text);
    assert_int_equal(r->faults.bad_lines, 2);
    assert_non_null(strstr(r->faults.examples, "line 3: it is longer than 65536 bytes"));
    assert_non_null(strstr(r->faults.examples, "line 6: it is longer than 65536 bytes"));
    holds(r, "csv", "1 1 5;2 1 5;2 2 5;");
    base_str_fini(&s);
}

/* ---- regrouping ---- */

/* Every second of all ratings to part 1. */
static void deal_odd(const void *context, uint32_t row, uint8_t *part_of)
{
    const struct recsys_rows *rows = context;

    for (uint64_t k = rows->start[row]; k < rows->start[row + 1]; k++)
        *part_of++ = k % 2;
}

static void test_rows(void **state)
{
    char *text = large_text(false, 60000);
    struct recsys_ratings *r = open_text(text);
    struct recsys_rows by_item, back, parts[2], odd;

    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(recsys_transpose(&r->by_user, true, threads, &by_item), BASE_OK);
        assert_int_equal(recsys_transpose(&by_item, true, threads, &back), BASE_OK);
        assert_true(by_item.rows == r->items && by_item.columns == r->users);
        assert_memory_equal(back.start, r->by_user.start, (r->users + 1) * sizeof *back.start);
        assert_memory_equal(back.column, r->by_user.column, r->count * sizeof *back.column);
        assert_memory_equal(back.code, r->by_user.code, r->count);
        assert_memory_equal(back.time, r->by_user.time, r->count * sizeof *back.time);
        assert_int_equal(recsys_deal(&r->by_user, deal_odd, &r->by_user, true, threads, 2, parts),
                         BASE_OK);
        odd = parts[1];
        assert_int_equal(odd.count, r->count / 2);
        assert_int_equal(parts[0].count, r->count - odd.count);
        for (uint64_t k = 0; k < odd.count; k++)
            assert_true(odd.column[k] == r->by_user.column[2 * k + 1] &&
                        odd.code[k] == r->by_user.code[2 * k + 1] &&
                        odd.time[k] == r->by_user.time[2 * k + 1]);
        assert_int_equal(odd.start[odd.rows], odd.count);
        recsys_rows_fini(&parts[0]);
        recsys_rows_fini(&parts[1]);
        recsys_rows_fini(&by_item);
        recsys_rows_fini(&back);
    }
    recsys_ratings_close(r);
    base_free(text);
}

/* ---- the cache ---- */

static void test_cache(void **state)
{
    const struct recsys_options options = {0};
    char *cache = base_format("%s/r.csv.paceline", folder);
    struct recsys_ratings *r;
    char digest[BASE_SHA256_HEX];

    (void)state;
    put("r.csv", "user,item,rating\n1,1,5\n1,1,4\n1,x,3\nbad\n");
    r = open_with("r.csv", &options);
    assert_false(r->cached);
    assert_string_equal(r->cache, cache);
    strcpy(digest, r->digest);
    recsys_ratings_close(r);
    r = open_with("r.csv", &options);
    assert_true(r->cached);
    assert_string_equal(r->digest, digest);
    assert_true(r->faults.bad_lines == 1 && r->faults.duplicates == 1);
    assert_non_null(strstr(r->faults.examples, "line 5: "));
    holds(r, "csv", "1 1 4;1 x 3;");
    put("r.csv", "user,item,rating\n1,1,5\n1,1,4\n1,y,3\nbad\n"); /* the same size */
    r = open_with("r.csv", &options);
    assert_false(r->cached);
    holds(r, "csv", "1 1 4;1 y 3;");
    r = open_with("r.csv", &(struct recsys_options){.no_cache = true});
    assert_false(r->cached);
    assert_null(r->cache);
    recsys_ratings_close(r);
    base_free(cache);
}

/* Damage anywhere makes it anew; no byte of it is trusted. */
static void test_damage(void **state)
{
    const struct recsys_options options = {0};
    char *cache = base_format("%s/d.csv.paceline", folder), *bytes;
    size_t count;

    (void)state;
    put("d.csv", "user,item,rating,time\n1,a,5,1\n1,b,4,2\n2,a,3,3\nbad\n");
    recsys_ratings_close(open_with("d.csv", &options));
    assert_int_equal(base_file_read(cache, 1 << 20, &bytes, &count), BASE_OK);
    for (size_t at = 0; at + 1 < count; at += at < sizeof(struct recsys_header) ? 37 : 64) {
        bool padding = bytes[at] == 0;
        struct recsys_ratings *r;

        bytes[at] ^= 0x20;
        assert_int_equal(base_file_replace(cache, bytes, count), BASE_OK);
        bytes[at] ^= 0x20;
        r = open_with("d.csv", &options);
        if (!padding)
            assert_false(r->cached);
        holds(r, "csv", "1 a 5 1;1 b 4 2;2 a 3 3;");
    }
    for (size_t left = 0; left < count; left += 1000) {
        assert_int_equal(base_file_replace(cache, bytes, left), BASE_OK);
        holds(open_with("d.csv", &options), "csv", "1 a 5 1;1 b 4 2;2 a 3 3;");
    }
    base_free(bytes);
    base_free(cache);
}

/* Several processes at once: all see the same, and one cache is left and nothing else. */
static void test_processes(void **state)
{
    enum { PROCESSES = 4 };
    char *text = large_text(false, 50000), *path = base_format("%s/many", folder), **names;
    pid_t children[PROCESSES];
    size_t count;

    (void)state;
    put("many/p.csv", text);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct recsys_ratings *r = NULL;
            char *file = base_format("%s/p.csv", path);
            base_status st = recsys_ratings_open(file, &(struct recsys_options){0}, &r);

            _exit(st == BASE_OK && r->count + r->faults.duplicates == 49950 ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(base_list_dir(path, &names, &count), BASE_OK);
    assert_int_equal(count, 2);
    assert_string_equal(names[1], "p.csv.paceline");
    base_names_free(names, count);
    base_free(path);
    base_free(text);
}

static void test_no_place(void **state)
{
    struct recsys_ratings *r;
    char *taken = base_format("%s/taken", folder);

    (void)state;
    /* A folder in the cache's place cannot be replaced; then the cache folder is used. */
    setenv("XDG_CACHE_HOME", taken, 1);
    put("n.csv", "user,item,rating\n1,1,5\n");
    put("n.csv.paceline/x", "");
    base_log_level(BASE_QUIET);
    r = open_with("n.csv", &(struct recsys_options){0});
    assert_non_null(r->cache);
    assert_non_null(strstr(r->cache, "/taken/paceline/ratings/"));
    recsys_ratings_close(r);
    r = open_with("n.csv", &(struct recsys_options){0});
    assert_true(r->cached);
    recsys_ratings_close(r);
    setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
    r = open_with("n.csv", &(struct recsys_options){0});
    assert_null(r->cache);
    holds(r, "csv", "1 1 5;");
    base_free(taken);
}

static int set_up(void **state)
{
    (void)state;
    folder = support_scratch();
    base_log_level(BASE_WARN);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_scratch_free(folder);
    return 0;
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
        cmocka_unit_test(test_formats),    cmocka_unit_test(test_columns),
        cmocka_unit_test(test_folders),    cmocka_unit_test(test_not_ratings),
        cmocka_unit_test(test_ids),        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_faults),     cmocka_unit_test(test_headings),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_against_a_table),
        cmocka_unit_test(test_long_lines), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_cache),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_processes),  cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_no_name),    cmocka_unit_test(test_far_apart),
        cmocka_unit_test(test_item_zero),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
