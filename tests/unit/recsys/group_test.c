/* SPDX-License-Identifier: MIT
 *
 * Ratings from text, in blocks: the same for any number of threads and across the borders of
 * blocks; ratings that are regrouped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"
#include "support/texts.h"

static void same_for_threads(bool netflix)
{
    char *text = texts_large(netflix, 250000);
    char digest[BASE_SHA256_HEX], *examples = NULL;
    uint64_t duplicates = 0;

    texts_put("large.txt", text);
    for (int threads = 1; threads <= 4; threads++) {
        struct recsys_options options = {.threads = threads, .no_cache = true};
        struct recsys_ratings *r = texts_open_with("large.txt", &options);

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

static void same_for_blocks(const char *text)
{
    static const uint32_t sizes[] = {0, 1, 7, 64, 1000};
    char digest[BASE_SHA256_HEX] = "";
    struct recsys_faults faults = {0};

    texts_put("blocks.txt", text);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct recsys_options options = {.threads = 2, .no_cache = true, .block = sizes[i]};
        struct recsys_ratings *r = texts_open_with("blocks.txt", &options);

        if (i == 0) {
            strcpy(digest, r->digest);
            faults = r->faults;
        }
        assert_string_equal(digest, r->digest);
        assert_int_equal(faults.bad_lines, r->faults.bad_lines);
        assert_int_equal(faults.duplicates, r->faults.duplicates);
        recsys_ratings_close(r);
    }
}

/* Lines, headings, byte order marks and titles that cross the borders of blocks. */
static void test_blocks(void **state)
{
    char *large = texts_large(true, 300);

    (void)state;
    same_for_blocks(large);
    same_for_blocks("\xef\xbb\xbfuser,item,rating\r\n1,2,3\r\nbad\r\n1,2,4\r\n\r\n2,2,5");
    same_for_blocks("user,item,rating\nann,x,1\nbob,y,2\nann,x,3\n");
    same_for_blocks("5:\n1,3,2005-01-01\n2,3,2005-01-01\nx:\n3,1,2005-01-01\n0:\n1,2,2005-01-02\n");
    base_free(large);
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
    r = texts_open(s.text);
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
    char *text = texts_large(true, 250000);
    uint8_t *table = base_calloc(USERS * ITEMS, 1);
    struct recsys_ratings *r;
    uint64_t count = 0;

    (void)state;
    for (size_t i = 0; i < 250000; i++)
        table[(uint32_t)(i * 2654435761u) % USERS * ITEMS + i / 40000] = (uint8_t)(i % 5 + 1);
    texts_put("large.txt", text);
    r = texts_open_with("large.txt", &(struct recsys_options){.threads = 2, .no_cache = true});
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
    r = texts_open(s.text);
    assert_int_equal(r->faults.bad_lines, 2);
    assert_non_null(strstr(r->faults.examples, "line 3: it is longer than 65536 bytes"));
    assert_non_null(strstr(r->faults.examples, "line 6: it is longer than 65536 bytes"));
    texts_hold(r, "csv", "1 1 5;2 1 5;2 2 5;");
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
    char *text = texts_large(false, 60000);
    struct recsys_ratings *r = texts_open(text);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_item_zero),  cmocka_unit_test(test_against_a_table),
        cmocka_unit_test(test_long_lines), cmocka_unit_test(test_rows),
    };

    return cmocka_run_group_tests(tests, texts_set_up, texts_tear_down);
}
