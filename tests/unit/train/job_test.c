/* SPDX-License-Identifier: MIT
 *
 * The job's table: every field goes into run.json and comes back; bad settings are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "train/job.h"

/* A value unlike the default for every option, as text. */
static const char *other_value(const struct base_option *option)
{
    switch (option->kind) {
    case BASE_FLAG:
        return "true";
    case BASE_INT:
    case BASE_SIZE:
        return "7";
    case BASE_REAL:
        return option->min > 0.1 ? "7" : option->max == 1 ? "0.25" : "0.125";
    case BASE_NAME:
        return base_option_choice(option, 1);
    default:
        return "other";
    }
}

static void test_round_trip(void **state)
{
    struct train_job job = train_job_defaults, back = train_job_defaults;
    json_t *json, *again;
    struct base_option row;

    (void)state;
    for (size_t i = 0; base_option_at(train_job_options, i, &row); i++)
        assert_int_equal(base_option_set(&row, "--", other_value(&row), &job), BASE_OK);
    json = base_options_to_json(train_job_options, &job);
    assert_null(json_object_get(json, "run"));
    assert_int_equal(base_options_from_json(train_job_options, json, &back), BASE_OK);
    again = base_options_to_json(train_job_options, &back);
    assert_true(json_equal(json, again));
    assert_string_equal(back.model, "other");
    assert_int_equal(back.record.count, 1);
    json_decref(again);
    json_decref(json);
}

static void test_names_are_unique(void **state)
{
    struct base_option row, same;

    (void)state;
    for (size_t i = 0; base_option_at(train_job_options, i, &row); i++)
        assert_int_equal(base_option_find(train_job_options, row.name, strlen(row.name), &same), i);
}

/* The names that users of other trainers type. */
static void test_aliases(void **state)
{
    static const char *const known[][2] = {{"learning-rate", "lr"},
                                           {"learning_rate", "lr"},
                                           {"batch-size", "batch"},
                                           {"optimizer", "optimiser"},
                                           {"normalize", "normalise"}};
    struct base_option row;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(base_option_find(train_job_options, known[i][0], strlen(known[i][0]), &row) >=
                    0);
        assert_string_equal(row.name, known[i][1]);
    }
    assert_int_equal(base_option_find(train_job_options, "learning", 8, &row), -1);
}

static void test_from_json_refuses(void **state)
{
    static const char *const bad[] = {
        "{\"epochs\":\"five\"}",     "{\"nobody\":1}",           "{\"lr\":-1}",
        "{\"record\":[1]}",          "{\"run\":\"name\"}",       "{\"flip\":1}",
        "{\"optimiser\":\"adamm\"}", "{\"schedule\":\"cosin\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct train_job job = train_job_defaults;
        json_t *json = NULL;

        assert_int_equal(base_json_parse(bad[i], strlen(bad[i]), &json), BASE_OK);
        assert_int_not_equal(base_options_from_json(train_job_options, json, &job), BASE_OK);
        json_decref(json);
    }
}

static void test_check(void **state)
{
    struct train_job job = train_job_defaults;

    (void)state;
    assert_int_equal(train_job_check(&job), BASE_ERR_USAGE);
    job.model = "m";
    assert_int_equal(train_job_check(&job), BASE_ERR_USAGE);
    job.data = "d";
    assert_int_equal(train_job_check(&job), BASE_OK);
    job.nesterov = true;
    job.momentum = 0;
    assert_int_equal(train_job_check(&job), BASE_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_aliases),    cmocka_unit_test(test_from_json_refuses),
        cmocka_unit_test(test_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
