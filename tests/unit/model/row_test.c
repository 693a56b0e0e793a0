/* SPDX-License-Identifier: MIT
 *
 * Rows of a table as a model's input: by name or in order, from texts and from JSON; and every row
 * that does not fit refused with the column's name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "model/input.h"

static char *colours[] = {"", "red", "true"};
static struct data_column columns[] = {
    {.name = "age", .kind = DATA_NUMBER, .fill = 30, .mean = 30, .deviation = 10},
    {.name = "colour", .kind = DATA_CATEGORY, .categories = colours, .category_count = 3},
};
static struct data_table table = {
    .columns = columns,
    .column_count = 2,
    .features = 4,
    .target = {.name = "price", .kind = DATA_NUMBER, .deviation = 1},
};
static const struct model_about about = {.input = {.c = 4, .h = 1, .w = 1}, .table = &table};

static void is(const float *x, float a, float b, float c, float d)
{
    assert_true(x[0] == a && x[1] == b && x[2] == c && x[3] == d);
}

static void test_fields(void **state)
{
    const struct model_field row[] = {{"price", "7"}, {"colour", " red"}, {"age", "50"}};
    const struct model_field unusual[] = {{"age", "NA"}, {"colour", "green"}};
    const struct model_field missing[] = {{"age", "20"}, {"colour", "?"}};
    float x[4];
    int unknown = 7;

    (void)state;
    assert_int_equal(model_input_row(&about, row, 3, x, &unknown), BASE_OK);
    is(x, 2, 0, 1, 0);
    assert_int_equal(unknown, 0);
    assert_int_equal(model_input_row(&about, unusual, 2, x, &unknown), BASE_OK);
    is(x, 0, 0, 0, 0);
    assert_int_equal(unknown, 1);
    assert_int_equal(model_input_row(&about, missing, 2, x, NULL), BASE_OK);
    is(x, -1, 1, 0, 0);
}

static void refuse(const struct model_field *row, size_t count, const char *words)
{
    float x[4];

    assert_int_equal(model_input_row(&about, row, count, x, NULL), BASE_ERR_DATA);
    if (strstr(base_message(), words) == NULL)
        fail_msg("no \"%s\" in: %s", words, base_message());
}

static void test_wrong_fields(void **state)
{
    const struct model_field few[] = {{"age", "1"}}, twice[] = {{"age", "1"}, {"age", "1"}};
    const struct model_field other[] = {{"aeg", "1"}}, text[] = {{"age", "old"}};
    const struct model_about images = {.input = {.c = 3, .h = 4, .w = 5}};
    float x[4];

    (void)state;
    refuse(few, 1, "column 'colour' is missing");
    refuse(twice, 2, "column 'age' is there twice");
    refuse(other, 1, "did you mean 'age'?");
    refuse(text, 1, "'old' in column 'age' is not a number");
    assert_int_equal(model_input_row(&images, few, 1, x, NULL), BASE_ERR_MODEL);
    assert_string_equal(base_message(), "the model takes images of 3x4x5, not rows of a table");
}

static void test_image(void **state)
{
    float x[4];

    (void)state;
    assert_int_equal(model_input_image(&about, "GIF", 3, x), BASE_ERR_MODEL);
    assert_string_equal(base_message(), "the model takes rows of a table, not images");
}

static base_status from_json(const char *text, float *x, int *unknown_p)
{
    json_t *row = json_loads(text, JSON_DECODE_ANY, NULL);
    base_status st = model_input_json(&about, row, x, unknown_p);

    json_decref(row);
    return st;
}

static void test_json(void **state)
{
    float x[4];
    int unknown;

    (void)state;
    assert_int_equal(from_json("{\"colour\": \"red\", \"age\": 45}", x, &unknown), BASE_OK);
    is(x, 1.5, 0, 1, 0);
    assert_int_equal(from_json("[\"45\", true]", x, &unknown), BASE_OK);
    is(x, 1.5, 0, 0, 1);
    assert_int_equal(from_json("[42.5, null]", x, &unknown), BASE_OK);
    is(x, 1.25, 1, 0, 0);
    assert_int_equal(from_json("[1]", x, &unknown), BASE_ERR_DATA);
    assert_string_equal(base_message(), "a row of 1 fields; the model takes 2");
    assert_int_equal(from_json("7", x, &unknown), BASE_ERR_DATA);
    assert_int_equal(from_json("{\"age\": [1], \"colour\": \"red\"}", x, &unknown), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "column 'age' takes a number"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_wrong_fields),
        cmocka_unit_test(test_image),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
