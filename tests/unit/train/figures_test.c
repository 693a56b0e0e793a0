/* SPDX-License-Identifier: MIT
 *
 * Figures of strategies added up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "train/figures.h"

static json_t *parse(const char *text)
{
    json_t *value;

    assert_int_equal(base_json_parse(text, strlen(text), &value), BASE_OK);
    return value;
}

static void expect_sum(const char *a, const char *b, const char *wanted)
{
    json_t *sum = parse(a), *more = parse(b), *want = parse(wanted);

    train_figures_add(sum, more);
    if (!json_equal(sum, want))
        fail_msg("%s and %s do not make %s", a, b, wanted);
    json_decref(sum);
    json_decref(more);
    json_decref(want);
}

static void test_sums(void **state)
{
    (void)state;
    expect_sum("{}", "{\"a\": 1}", "{\"a\": 1}");
    expect_sum("{\"a\": 1}", "{\"a\": 2, \"b\": 0.5}", "{\"a\": 3, \"b\": 0.5}");
    expect_sum("{\"a\": 1}", "{\"a\": 0.5}", "{\"a\": 1.5}");
    expect_sum("{\"most_a\": 4}", "{\"most_a\": 3}", "{\"most_a\": 4}");
    expect_sum("{\"most_a\": 4}", "{\"most_a\": 5.5}", "{\"most_a\": 5.5}");
    expect_sum("{\"s\": [1, 2]}", "{\"s\": [1, 0, 7]}", "{\"s\": [2, 2, 7]}");
    expect_sum("{\"s\": [1, 2, 3]}", "{\"s\": [1]}", "{\"s\": [2, 2, 3]}");
    expect_sum("{\"o\": {\"a\": 1}}", "{\"o\": {\"a\": 1, \"b\": 2}}",
               "{\"o\": {\"a\": 2, \"b\": 2}}");
    expect_sum("{\"a\": 1}", "{\"a\": [1]}", "{\"a\": 1}"); /* of another kind */
    expect_sum("{\"a\": 1}", "{\"a\": null}", "{\"a\": 1}");
}

/* The sum is its own: a later one does not reach back into what was added. */
static void test_sum_is_a_copy(void **state)
{
    json_t *sum = json_object(), *mine = parse("{\"s\": [1]}");

    (void)state;
    train_figures_add(sum, mine);
    train_figures_add(sum, mine);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(sum, "s"), 0)), 2);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(mine, "s"), 0)), 1);
    json_decref(sum);
    json_decref(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sum_is_a_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
