/* SPDX-License-Identifier: MIT
 *
 * Made-up ratings: the counts that were asked for, the same bytes for a seed and any number of
 * threads, the same ratings in every format, and the structure that was planted.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "recsys/make.h"
#include "recsys/statistics.h"
#include "support/datafiles.h"

static char *folder;

static struct recsys_make plain(const char *format)
{
    return (struct recsys_make){
        .users = 700, .items = 400, .ratings = 60000, .seed = 5, .format = format, .threads = 1};
}

static void digest_of(const struct recsys_make *make, char hex[BASE_SHA256_HEX])
{
    char *path = base_format("%s/made", folder);

    if (recsys_make(make, path) != BASE_OK)
        fail_msg("%s", base_message());
    assert_int_equal(base_sha256_file(path, hex), BASE_OK);
    base_free(path);
}

static struct recsys_ratings *open_made(const struct recsys_make *make)
{
    char *path = base_format("%s/made", folder);
    struct recsys_ratings *r;

    assert_int_equal(recsys_make(make, path), BASE_OK);
    if (recsys_ratings_open(path, &(struct recsys_options){.no_cache = true, .strict = true}, &r) !=
        BASE_OK)
        fail_msg("%s", base_message());
    base_free(path);
    return r;
}

static void test_reproducible(void **state)
{
    (void)state;
    for (const char *const *format = recsys_make_formats; *format != NULL; format++) {
        struct recsys_make make = plain(*format);
        char one[BASE_SHA256_HEX], other[BASE_SHA256_HEX];

        digest_of(&make, one);
        make.threads = 3;
        digest_of(&make, other);
        assert_string_equal(one, other);
        make.seed++;
        digest_of(&make, other);
        assert_string_not_equal(one, other);
    }
}

static void test_formats(void **state)
{
    struct recsys_make csv = plain("csv");
    struct recsys_ratings *first = open_made(&csv);

    (void)state;
    assert_int_equal(first->count, 60000);
    assert_true(first->scale.lowest == 1 && first->scale.highest == 5 && first->scale.step == 1);
    for (const char *const *format = recsys_make_formats; *format != NULL; format++) {
        struct recsys_make make = plain(*format);
        struct recsys_ratings *r = open_made(&make);

        assert_string_equal(r->format, *format);
        assert_memory_equal(r->by_user.column, first->by_user.column, 4 * r->count);
        assert_memory_equal(r->by_user.code, first->by_user.code, r->count);
        for (uint64_t k = 0; k < r->count; k++)
            assert_int_equal(recsys_day(r->by_user.time[k]), recsys_day(first->by_user.time[k]));
        recsys_ratings_close(r);
    }
    recsys_ratings_close(first);
}

static void test_structure(void **state)
{
    struct recsys_make make = plain("csv");
    struct recsys_statistics s;
    struct recsys_ratings *r;
    double *sum, *count, error = 0, spread = 0;

    (void)state;
    make.half_stars = true;
    r = open_made(&make);
    assert_int_equal(recsys_statistics(r, &s), BASE_OK);
    assert_true(r->scale.levels == 10 && r->scale.step == 0.5f);
    assert_true(fabs(s.mean - 3.5) < 0.3);
    assert_true(s.items.most > 4 * s.items.median && s.users.most > 4 * s.users.median);
    assert_int_equal(s.count[0] + s.count[1] + s.count[2] + s.count[3] + s.count[4] + s.count[5] +
                         s.count[6] + s.count[7] + s.count[8] + s.count[9],
                     r->count);
    /* Means of items explain a part of what ratings differ by: biases are there. */
    sum = base_calloc(r->items, sizeof *sum);
    count = base_calloc(r->items, sizeof *count);
    for (uint64_t k = 0; k < r->count; k++) {
        sum[r->by_user.column[k]] += (double)recsys_value(&r->scale, &r->by_user, k);
        count[r->by_user.column[k]]++;
    }
    for (uint64_t k = 0; k < r->count; k++) {
        uint32_t i = r->by_user.column[k];
        double value = (double)recsys_value(&r->scale, &r->by_user, k);

        error += pow(value - sum[i] / count[i], 2);
        spread += pow(value - s.mean, 2);
    }
    assert_true(error < 0.9 * spread && error > 0.5 * spread);
    base_free(sum);
    base_free(count);
    recsys_ratings_close(r);
}

static void test_extremes(void **state)
{
    struct recsys_make make = plain("dat");
    struct recsys_ratings *r;
    char *path = base_format("%s/none", folder);

    (void)state;
    make.users = 30;
    make.items = 20;
    make.ratings = 600; /* every pair */
    r = open_made(&make);
    assert_true(r->count == 600 && r->users == 30 && r->items == 20);
    recsys_ratings_close(r);
    make.users = make.items = make.ratings = 1;
    r = open_made(&make);
    assert_int_equal(r->count, 1);
    recsys_ratings_close(r);
    make.ratings = 2;
    assert_int_equal(recsys_make(&make, path), BASE_ERR_USAGE);
    make = plain("netflix");
    make.half_stars = true;
    assert_int_equal(recsys_make(&make, path), BASE_ERR_USAGE);
    assert_false(base_exists(path));
    base_free(path);
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
        cmocka_unit_test(test_reproducible),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_extremes),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
