/* SPDX-License-Identifier: MIT
 *
 * Ratings as samples: each rating of a part is there once, under its index; targets have mean 0 and
 * deviation 1; a validation part is carved out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "data/table.h"
#include "recsys/pairs.h"
#include "support/rated.h"

enum { USERS = 40, ITEMS = 30, EACH = 12 };

static struct rated rated;
static struct recsys_ratings ratings;
static struct recsys_division parts;

static int setup(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    ratings = (struct recsys_ratings){.users = USERS, .items = ITEMS, .scale = rated.scale};
    parts = (struct recsys_division){rated.by_user, rated.by_item, rated.test};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rated_fini(&rated);
    return 0;
}

static struct data_set *open_set(double validation)
{
    const struct data_options options = {.validation = validation, .seed = 3};
    struct data_set *set = NULL;

    if (recsys_pairs_open("ratings", &ratings, &parts, &options, &set) != BASE_OK)
        fail_msg("%s", base_message());
    return set;
}

static void assert_part(const struct data_set *set, enum data_part part,
                        const struct recsys_rows *rows)
{
    assert_int_equal(data_describe(set)->count[part], rows->count);
    for (uint32_t u = 0; u < rows->rows; u++)
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++) {
            float x[2];

            data_features(set, part, (uint32_t)k, x);
            assert_true(x[0] == (float)u && x[1] == (float)rows->column[k]);
            assert_true(data_target(set, part, (uint32_t)k) ==
                        (double)recsys_value(&rated.scale, rows, k));
        }
}

static void test_every_rating(void **state)
{
    struct data_set *set = open_set(0);
    const struct data_info *info = data_describe(set);
    double sum = 0, squares = 0;

    (void)state;
    assert_true(data_is_regression(info));
    assert_int_equal(info->channels, 2);
    assert_part(set, DATA_TRAIN, &rated.by_user);
    assert_part(set, DATA_TEST, &rated.test);
    for (uint32_t i = 0; i < info->count[DATA_TRAIN]; i++) {
        const double y = (double)data_number(set, DATA_TRAIN, i);

        sum += y;
        squares += y * y;
    }
    assert_true(fabs(sum / info->count[DATA_TRAIN]) < 1e-5);
    assert_true(fabs(squares / info->count[DATA_TRAIN] - 1) < 1e-5);
    assert_true(info->table->target.lowest == 0.5 && info->table->target.highest == 5);
    data_close(set);
}

static void test_validation(void **state)
{
    struct data_set *set = open_set(0.25);
    const uint32_t *count = data_describe(set)->count;

    (void)state;
    assert_int_equal(count[DATA_TRAIN] + count[DATA_VALIDATION], rated.by_user.count);
    assert_in_range(4 * count[DATA_VALIDATION], rated.by_user.count - 4, rated.by_user.count + 4);
    assert_int_equal(count[DATA_TEST], rated.test.count);
    data_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_rating),
                                       cmocka_unit_test(test_validation)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
