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

static void expect_answer_of(struct train_job job, const char *settings, const char *words)
{
    json_t *description, *values = parse(settings);

    job.model = "mlp:8x1";
    job.data = "synthetic";
    description = train_job_to_json(&job);
    assert_int_equal(train_settings_check(description, values),
                     words == NULL ? BASE_OK : BASE_ERR_USAGE);
    if (words != NULL && strstr(base_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), words);
    json_decref(description);
    json_decref(values);
}

static void expect_answer(const char *strategy, const char *settings, const char *words)
{
    struct train_job job = train_job_defaults;

    job.strategy = strategy;
    expect_answer_of(job, settings, words);
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

/* What the rest of the job does not allow, or has not counted the memory of. */
static void test_settings_and_job(void **state)
{
    struct train_job job = train_job_defaults;

    (void)state;
    job.strategy = "ps";
    expect_answer_of(job, "{\"consistency\": \"asp\"}", NULL);
    job.sync_bn = true;
    expect_answer_of(job, "{\"consistency\": \"asp\"}", "--sync-bn needs processes");
    expect_answer_of(job, "{\"backup\": \"1\"}", "--sync-bn needs processes");
    expect_answer_of(job, "{\"consistency\": \"bsp\"}", NULL);
    expect_answer("ps:consistency=asp", "{\"correct\": \"on\"}", "memory");
    expect_answer("ps:consistency=asp,correct=on", "{\"correct\": \"off\"}", NULL);
    expect_answer("ps:consistency=asp,correct=on", "{\"correct\": \"on\"}", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settings),
                                       cmocka_unit_test(test_settings_and_job)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
