/* SPDX-License-Identifier: MIT
 *
 * Sweeps: ranges become lists of values, the rest is common to all; what is no range is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "lab/lab.h"
#include "lab/sweep.h"

struct settings {
    double lr;
    int64_t batch;
    const char *model;
};

static const struct base_option options[] = {
    {.name = "lr", .argument = "X", .kind = BASE_REAL, .offset = offsetof(struct settings, lr)},
    {.name = "batch",
     .argument = "N",
     .kind = BASE_INT,
     .offset = offsetof(struct settings, batch)},
    {.name = "model",
     .argument = "M",
     .kind = BASE_TEXT,
     .offset = offsetof(struct settings, model)},
    {0},
};

static base_status sweep(int64_t points, int count, const struct base_given *given, json_t **file_p)
{
    return lab_sweep(&(struct lab_sweep){.options = options,
                                         .given = given,
                                         .given_count = count,
                                         .points = points,
                                         .judge = "validation_loss"},
                     file_p);
}

static void test_lists(void **state)
{
    const struct base_given given[] = {
        {"model", "../x..y"}, {"lr", "0.001..1"}, {"batch", "16..18"}};
    json_t *file = NULL;
    struct lab lab;

    (void)state;
    assert_int_equal(sweep(4, 3, given, &file), BASE_OK);
    assert_int_equal(lab_open("sweep", file, &(struct lab_changes){0}, &lab), BASE_OK);
    assert_int_equal(lab.point_count, 12); /* 4 rates; 16, 17 and 18: one of four values twice */
    assert_string_equal(lab.points[0].name, "lr=0.001 batch=16");
    assert_string_equal(lab.points[3].name, "lr=0.01 batch=16");
    assert_string_equal(lab.points[11].name, "lr=1 batch=18");
    assert_string_equal(lab.best, "validation_loss");
    assert_string_equal(json_string_value(json_object_get(lab.points[5].options, "model")),
                        "../x..y");
    assert_true(json_number_value(json_object_get(lab.points[5].options, "validation")) > 0);
    assert_true(lab.plots[0].log_x);
    assert_string_equal(lab.plots[0].series, "batch");
    lab_close(&lab);
    json_decref(file);
}

/* Whole numbers without a point, from zero on, and what the options say counts. */
static void test_linear(void **state)
{
    const struct base_given given[] = {{"lr", "0..0.9"}};
    json_t *file = NULL, *values;

    (void)state;
    assert_int_equal(sweep(4, 1, given, &file), BASE_OK);
    values = json_object_get(
        json_object_get(json_array_get(json_object_get(file, "cases"), 0), "train"), "lr");
    assert_int_equal(json_array_size(values), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs(json_number_value(json_array_get(values, i)) - 0.3 * (double)i) < 1e-9);
    json_decref(file);
}

static void test_refused(void **state)
{
    static const struct {
        struct base_given given[2];
        int count;
        const char *says;
    } bad[] = {
        {{{"lr", "0.1"}}, 1, "needs a range"},
        {{{"lr", "1..0.1"}}, 1, "A below B"},
        {{{"lr", "1..1"}}, 1, "A below B"},
        {{{"lr", "-1..1"}}, 1, "A below B"},
        {{{"lr", "0.1..x"}}, 1, "A below B"},
        {{{"lr", "..3"}}, 1, "A below B"},
        {{{"lr", "0..1e999"}}, 1, "A below B"},
        {{{"lr", "1e-300..1e300"}}, 1, "A below B"},
        {{{"batch", "1.5..3"}}, 1, "whole numbers"},
        {{{"batch", "1..1e21"}}, 1, "whole numbers"},
        {{{"lr", "0..1"}, {"lr", "0..2"}}, 2, "given twice"},
        {{{"model", "1..2"}}, 1, "needs a range"},
    };
    json_t *file;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(sweep(3, bad[i].count, bad[i].given, &file), BASE_ERR_USAGE);
        assert_non_null(strstr(base_message(), bad[i].says));
        assert_null(file);
    }
    assert_int_equal(sweep(1, 1, (const struct base_given[]){{"lr", "1..2"}}, &file),
                     BASE_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
