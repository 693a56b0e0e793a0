/* SPDX-License-Identifier: MIT
 *
 * Which options may change while a job runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "train/settings.h"

static json_t *parse(const char *text)
{
    json_t *value;

    assert_int_equal(base_json_parse(text, strlen(text), &value), BASE_OK);
    return value;
}

static void expect_answer(const char *strategy, const char *settings, const char *words)
{
    struct train_job job = train_job_defaults;
    json_t *description, *values = parse(settings);

    job.model = "mlp:8x1";
    job.data = "synthetic";
    job.strategy = strategy;
    description = train_job_to_json(&job);
    assert_int_equal(train_settings_check(description, values),
                     words == NULL ? BASE_OK : BASE_ERR_USAGE);
    if (words != NULL && strstr(base_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), words);
    json_decref(description);
    json_decref(values);
}

static void test_settings(void **state)
{
    (void)state;
    expect_answer("local-sgd:k=2", "{\"k\": \"8\"}", NULL);
    expect_answer("local-sgd", "{}", NULL);
    expect_answer("local-sgd", "{\"k\": \"-1\"}", "k takes a whole number");
    expect_answer("local-sgd", "{\"k\": \"8\", \"slots\": \"on\"}", "cannot change");
    expect_answer("local-sgd", "{\"kk\": \"8\"}", "has no option 'kk'");
    expect_answer("auto", "{\"k\": \"8\"}", "strategy ddp has no option 'k'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settings)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
