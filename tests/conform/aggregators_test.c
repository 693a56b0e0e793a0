/* SPDX-License-Identifier: MIT
 *
 * What every aggregator of the registry promises, with each text of its examples: equal updates
 * give that update, the order of workers does not matter, the same rows give the same bits, and as
 * many outliers as it says it tolerates leave it near the other updates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/aggregator.h"

enum { ROWS = 9, FLOATS = 777 };

static float values[ROWS][FLOATS];
static struct train_row rows[ROWS];

static void fill(void)
{
    for (int r = 0; r < ROWS; r++) {
        struct base_rng rng = base_rng_of(3, BASE_STREAM_TEST, 1, 0, (uint32_t)r);

        for (uint32_t i = 0; i < FLOATS; i++)
            values[r][i] = base_rng_unit(base_rng_u32(&rng, i)) - 0.5f;
        rows[r] = (struct train_row){.values = values[r],
                                     .worker = (uint32_t)r + 1,
                                     .samples = 64 + r,
                                     .loss = 0.3 + 0.1 * r,
                                     .judged = 1.3 - 0.1 * r,
                                     .trusted = r == ROWS - 1,
                                     .age = r == 4};
    }
}

typedef void check(struct train_aggregation *aggregation);

static void for_each(check *each)
{
    for (size_t i = 0; i < train_aggregator_count; i++) {
        const struct train_aggregator *a = train_aggregator_registry[i];
        struct train_aggregation aggregation;
        const char *const none[] = {"", NULL};
        const char *const *examples = a->examples != NULL ? a->examples : none;

        for (; *examples != NULL; examples++) {
            char *text = base_format("%s:%s", a->name, *examples);

            assert_int_equal(train_aggregation_find(text, &aggregation), BASE_OK);
            assert_ptr_equal(aggregation.rule, a);
            fill();
            each(&aggregation);
            train_aggregation_fini(&aggregation);
            base_free(text);
        }
    }
}

static void aggregate(struct train_aggregation *a, float *y)
{
    assert_int_equal(train_aggregate(a, rows, ROWS, FLOATS, y, NULL), BASE_OK);
}

static void check_equal(struct train_aggregation *a)
{
    float y[FLOATS];

    assert_non_null(a->rule->help);
    for (int r = 1; r < ROWS; r++)
        memcpy(values[r], values[0], sizeof values[r]);
    aggregate(a, y);
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabsf(y[i] - values[0][i]) < 1e-6f);
}

static void check_order(struct train_aggregation *a)
{
    float y[FLOATS], again[FLOATS], other[FLOATS];

    aggregate(a, y);
    aggregate(a, again);
    assert_memory_equal(y, again, sizeof y);
    for (int r = 0; r < ROWS / 2; r++) {
        struct train_row row = rows[r];

        rows[r] = rows[ROWS - 1 - r];
        rows[ROWS - 1 - r] = row;
    }
    aggregate(a, other);
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabsf(y[i] - other[i]) < 1e-6f);
}

static double distance(const float *a, const double *b)
{
    double sum = 0;

    for (int i = 0; i < FLOATS; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(sum);
}

/* With the first `bad` rows anything: is y near the others, and between them where the rule goes by
 * coordinates? */
static void check_near(const struct train_aggregation *a, const float *y, int bad)
{
    double mean[FLOATS] = {0}, radius = 0;

    for (int r = bad; r < ROWS; r++)
        for (int i = 0; i < FLOATS; i++)
            mean[i] += (double)values[r][i] / (ROWS - bad);
    for (int r = bad; r < ROWS; r++)
        radius = fmax(radius, distance(values[r], mean));
    assert_true(distance(y, mean) <= 2.0 * (ROWS - bad) / (ROWS - 2 * bad) * radius);
    for (int i = 0; i < FLOATS && a->rule->combine != NULL; i++)
        assert_true(fabsf(y[i]) <= 0.5f);
}

/* Outliers far away on both sides, far away on one, and near enough to be taken seriously. */
static void check_outliers(struct train_aggregation *a)
{
    const float sizes[][2] = {{-1e30f, 1e30f}, {1e30f, 1e30f}, {3, 3}, {-0.8f, 0.8f}};
    int bad = train_aggregation_tolerates(a, ROWS);
    float y[FLOATS];

    assert_true(bad >= 0 && 2 * bad < ROWS);
    for (size_t kind = 0; bad > 0 && kind < sizeof sizes / sizeof *sizes; kind++) {
        for (int r = 0; r < bad; r++)
            for (int i = 0; i < FLOATS; i++)
                values[r][i] = sizes[kind][r % 2];
        aggregate(a, y);
        check_near(a, y, bad);
    }
}

static void test_equal_updates_give_that_update(void **state)
{
    (void)state;
    for_each(check_equal);
}

static void test_the_order_of_workers_does_not_matter(void **state)
{
    (void)state;
    for_each(check_order);
}

static void test_tolerated_outliers_do_not_move_it(void **state)
{
    (void)state;
    for_each(check_outliers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_updates_give_that_update),
        cmocka_unit_test(test_the_order_of_workers_does_not_matter),
        cmocka_unit_test(test_tolerated_outliers_do_not_move_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
