/* SPDX-License-Identifier: MIT
 *
 * Errors of predicted numbers: figures computed by hand, sums over workers, a target that does not
 * vary.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/errors.h"

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12))
        fail_msg("%.17g is not %.17g", a, b);
}

static void test_figures(void **state)
{
    const float truth[] = {1, 2, 3, 6}, predicted[] = {2, 2, 2, 4};
    struct train_errors e = {0};

    (void)state;
    train_errors_add(&e, truth, predicted, 4, 6);
    near(train_errors_loss(&e), 1.5);
    near(train_errors_mae(&e, 10), 10);
    near(train_errors_rmse(&e, 10), 10 * sqrt(1.5));
    near(train_errors_r2(&e), 1 - 6.0 / 14); /* the mean is 3 */
}

static void test_workers(void **state)
{
    const float truth[] = {1, 2, 3, 6}, predicted[] = {2, 2, 2, 4};
    struct train_errors whole = {0}, a = {0}, b = {0};
    double sum[16] = {0}, other[16] = {0};

    (void)state;
    assert_true(train_errors_numbers() <= 16);
    train_errors_add(&whole, truth, predicted, 4, 6);
    train_errors_add(&a, truth, predicted, 3, 2);
    train_errors_add(&b, truth + 3, predicted + 3, 1, 4);
    train_errors_pack(&a, sum);
    train_errors_pack(&b, other);
    for (size_t i = 0; i < train_errors_numbers(); i++)
        sum[i] += other[i];
    train_errors_unpack(&a, sum);
    assert_int_equal(a.count, 4);
    near(train_errors_r2(&a), train_errors_r2(&whole));
    near(train_errors_mae(&a, 3), train_errors_mae(&whole, 3));
    near(train_errors_loss(&a), 1.5);
}

static void test_constant(void **state)
{
    const float truth[] = {2, 2}, predicted[] = {2, 3};
    struct train_errors e = {0};
    json_t *json;

    (void)state;
    assert_true(isnan(train_errors_r2(&e)));
    train_errors_add(&e, truth, predicted, 2, 1);
    assert_true(isnan(train_errors_r2(&e)));
    json = train_errors_json(&e, 1);
    assert_true(json_is_null(json_object_get(json, "r2")));
    near(json_real_value(json_object_get(json, "mae")), 0.5);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_constant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
