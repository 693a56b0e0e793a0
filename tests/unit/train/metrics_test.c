/* SPDX-License-Identifier: MIT
 *
 * Metrics against numbers worked out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "train/metrics.h"

/* truth 0 0 0 1 1 2, predicted 0 0 1 1 2 2 */
static void fill(struct train_metrics *m)
{
    const int32_t truth[] = {0, 0, 0, 1, 1, 2}, predicted[] = {0, 0, 1, 1, 2, 2};

    train_metrics_init(m, 3);
    train_metrics_add(m, truth, predicted, 4, 2.0);
    train_metrics_add(m, truth + 4, predicted + 4, 2, 1.0);
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void test_json(void **state)
{
    struct train_metrics m;
    json_t *json, *classes, *confusion;

    (void)state;
    fill(&m);
    json = train_metrics_json(&m, (char *[]){"cat", "h\xc3\xbchner", "dog"});
    assert_float_equal(number(json, "loss"), 0.5, 1e-12);
    assert_float_equal(number(json, "accuracy"), 4.0 / 6, 1e-12);
    classes = json_object_get(json, "per_class");
    assert_int_equal(json_array_size(classes), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(classes, 1), "name")),
                        "h\xc3\xbchner");
    assert_float_equal(number(json_array_get(classes, 0), "precision"), 1, 1e-12);
    assert_float_equal(number(json_array_get(classes, 0), "recall"), 2.0 / 3, 1e-12);
    assert_float_equal(number(json_array_get(classes, 0), "f1"), 0.8, 1e-12);
    assert_float_equal(number(json_array_get(classes, 1), "precision"), 0.5, 1e-12);
    assert_float_equal(number(json_array_get(classes, 2), "recall"), 1, 1e-12);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(classes, 0), "support")), 3);
    confusion = json_object_get(json, "confusion");
    assert_int_equal(json_integer_value(json_array_get(json_array_get(confusion, 0), 1)), 1);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(confusion, 1), 2)), 1);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(confusion, 2), 0)), 0);
    json_decref(json);
    train_metrics_fini(&m);
}

static void test_text(void **state)
{
    char *names[] = {"cat", "dog", "emu"};
    struct train_metrics m;
    struct base_str text = {0};

    (void)state;
    fill(&m);
    train_metrics_text(&m, names, &text);
    assert_non_null(strstr(text.text, "cat                 1.0000    0.6667    0.8000         3"));
    assert_non_null(strstr(text.text, "Confusion"));
    base_str_fini(&text);
    train_metrics_fini(&m);
}

/* Names of many bytes are cut between characters, and the columns stay where they are. */
static void test_text_of_long_names(void **state)
{
    char *names[] = {"cat", "\u00fcberaus m\u00fc\u00dfige \u00c4ffin", "\u732b\u732b\u732b\u732b"};
    struct train_metrics m;
    struct base_str text = {0};

    (void)state;
    fill(&m);
    train_metrics_text(&m, names, &text);
    assert_non_null(strstr(text.text, "\n\u00fcberaus m\u00fc\u00dfige \u00c4    0.5000"));
    assert_non_null(strstr(text.text, "\n\u732b\u732b\u732b\u732b            0.5000"));
    assert_non_null(strstr(text.text, "    cat \u00fcberau \u732b\u732b\u732b\n"));
    assert_true(base_is_utf8(text.text));
    base_str_fini(&text);
    train_metrics_fini(&m);
}

/* A class that never occurs and is never predicted has zeros, not NaN. */
static void test_absent_class(void **state)
{
    const int32_t zero = 0;
    struct train_metrics m;
    json_t *json, *absent;

    (void)state;
    train_metrics_init(&m, 2);
    train_metrics_add(&m, &zero, &zero, 1, 0.1);
    json = train_metrics_json(&m, (char *[]){"cat", "h\xc3\xbchner", "dog"});
    absent = json_array_get(json_object_get(json, "per_class"), 1);
    assert_true(number(absent, "precision") == 0 && number(absent, "f1") == 0);
    json_decref(json);
    train_metrics_fini(&m);
}

/* No matrix for very many classes: its size would be their square. */
static void test_many_classes(void **state)
{
    struct train_metrics m;

    (void)state;
    train_metrics_init(&m, TRAIN_MAX_MATRIX + 1);
    assert_null(m.confusion);
    train_metrics_fini(&m);
}

/* The numbers of several workers' shares add up to what one would have counted. */
static void test_packed_shares_add_up(void **state)
{
    const int32_t truth[] = {0, 1, 2, 2, 1, 0, 2}, predicted[] = {0, 2, 2, 1, 1, 0, 0};
    struct train_metrics whole, share, sum;
    double numbers[64], all[64] = {0};

    (void)state;
    assert_true(train_metrics_numbers(3) <= 64);
    train_metrics_init(&whole, 3);
    train_metrics_add(&whole, truth, predicted, 7, 3.5);
    for (int i = 0; i < 2; i++) {
        train_metrics_init(&share, 3);
        train_metrics_add(&share, truth + 4 * i, predicted + 4 * i, i == 0 ? 4 : 3,
                          i == 0 ? 2 : 1.5);
        train_metrics_pack(&share, numbers);
        for (size_t j = 0; j < train_metrics_numbers(3); j++)
            all[j] += numbers[j];
        train_metrics_fini(&share);
    }
    train_metrics_unpack(&sum, 3, all);
    assert_int_equal(sum.count, 7);
    assert_int_equal(sum.correct, whole.correct);
    assert_true(sum.loss_sum == whole.loss_sum);
    assert_memory_equal(sum.support, whole.support, 3 * sizeof *sum.support);
    assert_memory_equal(sum.predicted, whole.predicted, 3 * sizeof *sum.predicted);
    assert_memory_equal(sum.hit, whole.hit, 3 * sizeof *sum.hit);
    assert_memory_equal(sum.confusion, whole.confusion, 9 * sizeof *sum.confusion);
    train_metrics_fini(&whole);
    train_metrics_fini(&sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_of_long_names),
        cmocka_unit_test(test_absent_class),
        cmocka_unit_test(test_many_classes),
        cmocka_unit_test(test_packed_shares_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
