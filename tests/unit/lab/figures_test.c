/* SPDX-License-Identifier: MIT
 *
 * Figures out of records, and statistics over seeds; also where numbers are missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "lab/figures.h"

static const char record_text[] =
    "{\"wall_seconds\": 9, \"epochs\": [{\"loss\": 2.5, \"test_accuracy\": 0.5}, "
    "{\"loss\": 1.5, \"test_accuracy\": null}], \"result\": {\"steps\": 40, "
    "\"test\": {\"accuracy\": 0.75, \"loss\": 1}, \"train\": {\"loss\": 1.5, \"accuracy\": null}, "
    "\"time\": {\"total\": 8, \"wait\": 1}, \"step_seconds\": {\"mean\": 0.2, \"median\": 0.1}, "
    "\"samples_per_second\": 320, \"ranks\": ["
    "{\"total\": 8, \"wait\": 1, \"communicate\": 1, \"bytes_sent\": 100, \"idle\": 0.25, "
    "\"peak_memory_bytes\": 5}, "
    "{\"total\": 8, \"wait\": 2, \"communicate\": 2, \"bytes_sent\": 200, \"idle\": 0.5, "
    "\"peak_memory_bytes\": 7}"
    "]}}";

static void test_values(void **state)
{
    static const struct {
        const char *name;
        double value;
    } wanted[] = {
        {"accuracy", 0.75},      {"accuracy@1", 0.5},
        {"accuracy@2", NAN},     {"accuracy@3", NAN},
        {"loss", 1.5},           {"loss@1", 2.5},
        {"test_loss", 1},        {"validation_loss", NAN},
        {"train_accuracy", NAN}, {"seconds", 8},
        {"wall_seconds", 9},     {"step_seconds", 0.2},
        {"step_median", 0.1},    {"steps", 40},
        {"bytes_sent", 300},     {"link_bytes", 5},
        {"idle", 0.375},         {"idle_least", 0.25},
        {"idle_most", 0.5},      {"peak_memory", 7},
        {"time.wait", 1},        {"time.none.x", NAN},
        {"test.accuracy", 0.75}, {"samples_per_second", 320},
        {"speedup", NAN},
    };
    json_t *record = NULL;

    (void)state;
    assert_int_equal(base_json_parse(record_text, sizeof record_text - 1, &record), BASE_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        double value = lab_figure_value(wanted[i].name, record);

        assert_int_equal(lab_figure_check(wanted[i].name), BASE_OK);
        if (isnan(wanted[i].value) ? !isnan(value) : fabs(value - wanted[i].value) > 1e-12)
            fail_msg("%s is %g, not %g", wanted[i].name, value, wanted[i].value);
        assert_true(isnan(lab_figure_value(wanted[i].name, NULL)) ||
                    strcmp(wanted[i].name, "bytes_sent") == 0);
    }
    json_decref(record);
}

/* A run of one step: train says 0 where there was nothing to be timed. */
static void test_nothing_timed(void **state)
{
    json_t *record = json_pack("{s:{s:f, s:{s:f}, s:i}}", "result", "samples_per_second", 0.0,
                               "step_seconds", "mean", 0.0, "steps", 0);

    (void)state;
    assert_true(isnan(lab_figure_value("samples_per_second", record)));
    assert_true(isnan(lab_figure_value("step_seconds", record)));
    assert_true(lab_figure_value("steps", record) == 0);
    json_decref(record);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"",
                                      "acuracy",
                                      "accuracy@",
                                      "accuracy@0",
                                      "accuracy@x",
                                      "accuracy@1x",
                                      "accuracy@99999999999",
                                      "idle@1",
                                      "@1"};
    char *title = lab_figure_title("accuracy@3");

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (lab_figure_check(bad[i]) == BASE_OK)
            fail_msg("'%s' is taken for a figure", bad[i]);
    assert_string_equal(title, "accuracy@3 %");
    assert_true(fabs(lab_figure_scale("accuracy@3") - 100) <= 0);
    assert_true(fabs(lab_figure_scale("bytes_sent") - 1e-6) <= 0);
    assert_true(fabs(lab_figure_scale("time.wait") - 1) <= 0);
    assert_true(lab_figure_has_epochs("loss") && !lab_figure_has_epochs("loss@1") &&
                !lab_figure_has_epochs("idle"));
    base_free(title);
}

static void test_statistics(void **state)
{
    struct lab_statistics s = lab_statistics((const double[]){2, NAN, 4, 9, INFINITY}, 5);

    (void)state;
    assert_int_equal(s.count, 3);
    assert_true(fabs(s.mean - 5) <= 1e-12);
    assert_true(fabs(s.deviation - sqrt(13)) <= 1e-12); /* (9 + 1 + 16) / 2 */
    assert_true(fabs(s.low - 2) <= 0);
    assert_true(fabs(s.high - 9) <= 0);
    s = lab_statistics((const double[]){7}, 1);
    assert_int_equal(s.count, 1);
    assert_true(fabs(s.mean - 7) <= 0);
    assert_true(isnan(s.deviation));
    s = lab_statistics(NULL, 0);
    assert_true(s.count == 0 && isnan(s.mean) && isnan(s.low));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_nothing_timed),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_statistics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
