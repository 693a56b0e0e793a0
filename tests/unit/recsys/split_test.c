/* SPDX-License-Identifier: MIT
 *
 * Splits: shares and folds are dealt as asked and by the ids alone, the last of every user are the
 * last, a date divides; what cannot be split is said.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "recsys/split.h"
#include "support/datafiles.h"

static char *folder;

static struct recsys_ratings *open_text(const char *text)
{
    char *path = base_format("%s/r.csv", folder);
    struct recsys_ratings *r;

    support_write(folder, "r.csv", text, strlen(text));
    if (recsys_ratings_open(path, &(struct recsys_options){.no_cache = true}, &r) != BASE_OK)
        fail_msg("%s", base_message());
    base_free(path);
    return r;
}

/* 200 users rate every step-th of 300 items. */
static struct recsys_ratings *open_grid(int step, const char *prefix)
{
    struct base_str s = {0};
    struct recsys_ratings *r;

    base_str_add(&s, "user,item,rating,time\n");
    for (int u = 0; u < 200; u++)
        for (int i = 0; i < 300; i += step)
            base_str_add(&s, "%s%d,%d,%d,%d\n", prefix, u, i, (u + i) % 5 + 1, 1000 * i + u);
    r = open_text(s.text);
    base_str_fini(&s);
    return r;
}

static struct recsys_parts *split_by(const struct recsys_ratings *r, const char *text,
                                     uint64_t seed)
{
    struct recsys_split split;
    struct recsys_parts *parts;

    if (recsys_split_parse(text, seed, &split) != BASE_OK ||
        recsys_parts_new(r, &split, &parts) != BASE_OK)
        fail_msg("%s", base_message());
    return parts;
}

static uint64_t count_tests(const struct recsys_ratings *r, const struct recsys_parts *parts)
{
    uint64_t count = 0;

    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = r->by_user.start[u]; k < r->by_user.start[u + 1]; k++)
            count += recsys_is_test(parts, u, k);
    return count;
}

static void test_share(void **state)
{
    struct recsys_ratings *r = open_grid(1, "");
    struct recsys_parts *one = split_by(r, "0.2", 1), *two = split_by(r, "0.2", 2);
    uint64_t both = 0, n = r->count;

    (void)state;
    assert_true(fabs((double)count_tests(r, one) - 0.2 * (double)n) < 5 * sqrt(0.16 * (double)n));
    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = r->by_user.start[u]; k < r->by_user.start[u + 1]; k++)
            both += recsys_is_test(one, u, k) && recsys_is_test(two, u, k);
    /* Another seed is another split, independent of it. */
    assert_true(fabs((double)both - 0.04 * (double)n) < 5 * sqrt(0.04 * (double)n));
    recsys_parts_free(one);
    recsys_parts_free(two);
    recsys_ratings_close(r);
}

/* Ratings of a smaller set are in the part that they have in a larger one, for ids of any kind. */
static void test_stays(void **state)
{
    static const char *const prefixes[] = {"", "user "};

    (void)state;
    for (int p = 0; p < 2; p++) {
        struct recsys_ratings *all = open_grid(1, prefixes[p]), *some = open_grid(3, prefixes[p]);
        struct recsys_parts *a = split_by(all, "fold:2/5", 7), *s = split_by(some, "fold:2/5", 7);

        for (uint32_t u = 0; u < some->users; u++)
            for (uint64_t k = some->by_user.start[u]; k < some->by_user.start[u + 1]; k++) {
                uint64_t there = all->by_user.start[u] + 3 * (k - some->by_user.start[u]);

                assert_int_equal(recsys_is_test(s, u, k), recsys_is_test(a, u, there));
            }
        recsys_parts_free(a);
        recsys_parts_free(s);
        recsys_ratings_close(all);
        recsys_ratings_close(some);
    }
}

/* An id that is no number leaves the others where they are. */
static void test_mixed(void **state)
{
    static const char *const lines = "1,1,5\n1,2,4\n2,1,3\n2,2,5\n2,3,4\n3,1,2\n3,3,1\n4,2,4\n"
                                     "4,3,5\n5,1,1\n5,2,2\n5,3,3\n10,1,3\n10,2,3\n10,3,3\n";
    char *plain = base_format("user,item,rating\n%s", lines);
    char *more = base_format("user,item,rating\n%sann,1,5\n1,novel,4\n", lines);
    struct recsys_ratings *a = open_text(plain), *b = open_text(more);
    struct recsys_parts *of_a = split_by(a, "0.5", 3), *of_b = split_by(b, "0.5", 3);

    (void)state;
    assert_non_null(a->user_ids.number);
    assert_null(b->user_ids.number);
    for (uint32_t u = 0; u < a->users; u++)
        for (uint64_t k = a->by_user.start[u]; k < a->by_user.start[u + 1]; k++) {
            struct recsys_id user, item;
            uint32_t v, i;
            uint64_t there;

            assert_true(recsys_id_find(&b->user_ids, recsys_id_text(&a->user_ids, u, &user), &v));
            assert_true(recsys_id_find(
                &b->item_ids, recsys_id_text(&a->item_ids, a->by_user.column[k], &item), &i));
            for (there = b->by_user.start[v]; b->by_user.column[there] != i;)
                there++;
            assert_int_equal(recsys_is_test(of_a, u, k), recsys_is_test(of_b, v, there));
        }
    recsys_parts_free(of_a);
    recsys_parts_free(of_b);
    recsys_ratings_close(a);
    recsys_ratings_close(b);
    base_free(plain);
    base_free(more);
}

static void test_folds(void **state)
{
    struct recsys_ratings *r = open_grid(2, "");
    struct recsys_parts *parts[5];
    double n = (double)r->count;

    (void)state;
    for (int f = 0; f < 5; f++) {
        char text[16];

        snprintf(text, sizeof text, "fold:%d/5", f + 1);
        parts[f] = split_by(r, text, 3);
        assert_true(fabs((double)count_tests(r, parts[f]) - 0.2 * n) < 5 * sqrt(0.16 * n));
    }
    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = r->by_user.start[u]; k < r->by_user.start[u + 1]; k++) {
            int tests = 0;

            for (int f = 0; f < 5; f++)
                tests += recsys_is_test(parts[f], u, k);
            assert_int_equal(tests, 1);
        }
    for (int f = 0; f < 5; f++)
        recsys_parts_free(parts[f]);
    recsys_ratings_close(r);
}

/* By user: items whose rating is for tests. */
static void tests_are(const char *text, const char *split, const char *want)
{
    struct recsys_ratings *r = open_text(text);
    struct recsys_parts *parts = split_by(r, split, 1);
    struct base_str s = {0};

    base_str_add(&s, "%s", "");
    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = r->by_user.start[u]; k < r->by_user.start[u + 1]; k++)
            if (recsys_is_test(parts, u, k))
                base_str_add(&s, "%u:%u ", r->user_ids.number[u],
                             r->item_ids.number[r->by_user.column[k]]);
    assert_string_equal(s.text, want);
    base_str_fini(&s);
    recsys_parts_free(parts);
    recsys_ratings_close(r);
}

static void test_times(void **state)
{
    static const char *const text = "user,item,rating,time\n"
                                    "1,1,5,2005-01-03\n1,2,5,2005-01-01\n1,3,5,2005-01-02\n"
                                    "2,1,5,2005-01-01\n"
                                    "3,1,5,2005-01-05\n3,2,5,2005-01-05\n3,3,4,2004-12-31\n"
                                    "3,4,4,2004-12-30\n";

    (void)state;
    tests_are(text, "last", "1:1 3:2 "); /* user 2 has one rating, which is for training */
    tests_are(text, "last:2", "1:1 1:3 3:1 3:2 ");
    tests_are(text, "last:9", "1:1 1:3 3:1 3:2 3:3 ");
    tests_are(text, "from:2005-01-03", "1:1 3:1 3:2 ");
}

static void test_bad(void **state)
{
    static const char *const bad[] = {"",
                                      "0",
                                      "1",
                                      "1.5",
                                      "-0.2",
                                      "x",
                                      "0.2x",
                                      "fold:",
                                      "fold:0/5",
                                      "fold:6/5",
                                      "fold:1/1",
                                      "fold:1/5x",
                                      "last:0",
                                      "last:x",
                                      "last2",
                                      "from:",
                                      "from:2005-13-01",
                                      "nan"};
    struct recsys_split split;
    struct recsys_parts *parts;
    struct recsys_ratings *r = open_text("user,item,rating\n1,1,5\n2,1,4\n");

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(recsys_split_parse(bad[i], 1, &split), BASE_ERR_USAGE);
    assert_int_equal(recsys_split_parse("last", 1, &split), BASE_OK);
    assert_int_equal(recsys_parts_new(r, &split, &parts), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "has no times"));
    recsys_ratings_close(r);
    r = open_text("user,item,rating,time\n1,1,5,10\n2,1,4,10\n");
    assert_int_equal(recsys_parts_new(r, &split, &parts), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "no rating for tests"));
    split = (struct recsys_split){.kind = RECSYS_SPLIT_DATE, .from = 5};
    assert_int_equal(recsys_parts_new(r, &split, &parts), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "no rating for training"));
    recsys_ratings_close(r);
}

static void divide(const struct recsys_ratings *r, const char *split, double validation,
                   int threads, struct recsys_division *d)
{
    const struct recsys_divide how = {split,           validation,   .seed = 7, .threads = threads,
                                      .by_item = true, .times = true};

    if (recsys_divide(r, &how, d) != BASE_OK)
        fail_msg("%s", base_message());
}

/* Each part has the ratings that recsys_is_test says, whole and in their order, for every kind of
 * split; what is not asked for is not made. */
static void test_parts(void **state)
{
    static const char *const splits[] = {"0.3", "fold:2/5", "last:4", "from:1970-01-02", "none"};
    struct recsys_ratings *r = open_grid(1, "");

    (void)state;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        const bool none = strcmp(splits[i], "none") == 0;
        struct recsys_parts *parts = none ? NULL : split_by(r, splits[i], 7);
        struct recsys_division d, bare;
        uint64_t at[2] = {0};

        divide(r, splits[i], 0, 1 + (int)i % 3, &d);
        for (uint32_t u = 0; u < r->users; u++)
            for (uint64_t k = r->by_user.start[u]; k < r->by_user.start[u + 1]; k++) {
                const bool is_test = !none && recsys_is_test(parts, u, k);
                const struct recsys_rows *rows = is_test ? &d.test : &d.by_user;
                const uint64_t to = at[is_test]++;

                assert_true(to >= rows->start[u] && to < rows->start[u + 1]);
                assert_int_equal(rows->column[to], r->by_user.column[k]);
                assert_int_equal(rows->code[to], r->by_user.code[k]);
                assert_int_equal(rows->time[to], r->by_user.time[k]);
            }
        assert_true(at[0] == d.by_user.count && at[1] == d.test.count);
        assert_int_equal(
            recsys_divide(r, &(struct recsys_divide){splits[i], 0, 7, 2, false, false}, &bare),
            BASE_OK);
        assert_null(bare.by_item.start);
        assert_true(bare.by_user.time == NULL && bare.test.time == NULL);
        assert_memory_equal(bare.by_user.column, d.by_user.column,
                            d.by_user.count * sizeof *d.by_user.column);
        recsys_division_fini(&d);
        recsys_division_fini(&bare);
        recsys_parts_free(parts);
    }
    recsys_ratings_close(r);
}

/* The validation part is taken from the training part alone; a rating stays in it when others come.
 */
static void test_validation(void **state)
{
    struct recsys_ratings *all = open_grid(1, ""), *some = open_grid(3, "");
    struct recsys_division plain, d, fewer, none;
    double expected;

    (void)state;
    divide(all, "0.2", 0, 1, &plain);
    divide(all, "0.2", 0.25, 2, &d);
    divide(some, "0.2", 0.25, 2, &fewer);
    divide(all, "none", 0.25, 2, &none);
    assert_int_equal(plain.validation.count, 0);
    assert_int_equal(none.test.count, 0);
    assert_int_equal(none.by_user.count + none.validation.count, all->count);
    assert_int_equal(d.by_item.count, d.by_user.count);
    assert_int_equal(d.test.count, plain.test.count);
    assert_memory_equal(d.test.column, plain.test.column, d.test.count * sizeof *d.test.column);
    expected = 0.25 * (double)plain.by_user.count;
    assert_true(fabs((double)d.validation.count - expected) < 5 * sqrt(expected));
    for (uint32_t u = 0; u < all->users; u++) {
        uint64_t train = d.by_user.start[u], held = d.validation.start[u];
        uint64_t same = fewer.validation.start[u];

        for (uint64_t k = plain.by_user.start[u]; k < plain.by_user.start[u + 1]; k++) {
            const uint32_t item = plain.by_user.column[k];
            const bool is_held =
                held < d.validation.start[u + 1] && d.validation.column[held] == item;

            if (is_held && item % 3 == 0)
                assert_int_equal(fewer.validation.column[same++], item / 3);
            if (is_held)
                held++;
            else
                assert_int_equal(d.by_user.column[train++], item);
        }
        assert_int_equal(train, d.by_user.start[u + 1]);
        assert_int_equal(held, d.validation.start[u + 1]);
        assert_int_equal(same, fewer.validation.start[u + 1]);
    }
    recsys_division_fini(&plain);
    recsys_division_fini(&d);
    recsys_division_fini(&fewer);
    recsys_division_fini(&none);
    recsys_ratings_close(all);
    recsys_ratings_close(some);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share), cmocka_unit_test(test_stays),
        cmocka_unit_test(test_mixed), cmocka_unit_test(test_folds),
        cmocka_unit_test(test_times), cmocka_unit_test(test_bad),
        cmocka_unit_test(test_parts), cmocka_unit_test(test_validation),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
