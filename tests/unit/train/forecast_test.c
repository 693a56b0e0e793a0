/* SPDX-License-Identifier: MIT
 *
 * Plans: formulas of bytes and times as docs/strategies.md has them, with a machine of known
 * speeds; what fits, and what is chosen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "train/forecast.h"
#include "train/session.h"

static const char DATA[] = "synthetic:classes=10,shape=1x16x16,train=64,test=8";

/* A sample takes a millisecond and calls 50 microseconds; an update 4 milliseconds. */
static base_status profile(void *context, int samples, struct train_profile *profile_p)
{
    ++*(int *)context;
    *profile_p = (struct train_profile){.compute = 50e-6 + 1e-3 * samples, .update = 4e-3};
    return BASE_OK;
}

static int calls;
static struct train_setting setting = {
    .workers = 2, .threads = 1, .memory_rate = 1e9, .profile = profile, .context = &calls};

static struct train_job job(void)
{
    struct train_job j = train_job_defaults;

    j.model = "mlp:64x7";
    j.data = DATA;
    j.batch = 32;
    return j;
}

static const struct train_forecast *of(const struct train_forecasts *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].text, text) == 0)
            return &list->at[i];
    return NULL;
}

static void is_near(double a, double b)
{
    assert_true(fabs(a - b) <= 1e-9 * fabs(b));
}

static void test_one_host(void **state)
{
    struct train_job j = job();
    struct train_session s;
    struct train_forecasts list;
    struct train_sizes sizes;
    const struct train_forecast *f;
    double w;

    (void)state;
    assert_int_equal(train_forecast_open(&j, &s), BASE_OK);
    train_memory_sizes(&s, s.strategy, s.options, 1, 32, 1, &sizes);
    w = sizes.weights;
    assert_int_equal(train_forecast_make(&s, &setting, true, &list), BASE_OK);
    assert_null(of(&list, "single")); /* two workers */
    assert_null(of(&list, "rows"));   /* of ratings */
    f = of(&list, "allreduce");
    assert_true(f->fits && f->cost.exact);
    is_near(f->cost.moved, 3 * w);
    is_near(f->seconds, 16.05e-3 + 4e-3 + 3 * w / 1e9);
    is_near(f->idle, 1 - 20.05e-3 / f->seconds);
    f = of(&list, "ddp");
    is_near(f->seconds, 16.05e-3 + 2e-3 + 2 * w / 1e9);
    assert_true(of(&list, "zero:stage=3")->worker > 0);
    assert_false(of(&list, "local-sgd")->cost.exact);
    f = of(&list, "ring");
    /* One micro-batch is best where layers are small: the workers take turns, but for gradients. */
    assert_true(f->cost.bubble > 0.4 && f->cost.bubble < 0.5);
    assert_true(f->cost.work >= 0.5 && f->cost.work < 0.7);
    assert_string_equal(list.choice->text, "ddp");
    is_near(train_forecast_judged(list.choice), 0.85 * list.choice->seconds);
    is_near(train_forecast_judged(f), f->seconds);
    train_forecasts_fini(&list);
    train_session_close(&s);
}

/* 1 MB a second: what is sent decides, and ddp hides some of it. */
static void test_hosts(void **state)
{
    struct train_job j = job();
    struct train_setting hosts = setting;
    struct train_session s;
    struct train_forecasts list;
    const struct train_forecast *all, *ddp;

    (void)state;
    hosts.workers = 4;
    hosts.link = 1e6;
    assert_int_equal(train_forecast_open(&j, &s), BASE_OK);
    assert_int_equal(train_forecast_make(&s, &hosts, true, &list), BASE_OK);
    all = of(&list, "allreduce");
    ddp = of(&list, "ddp");
    is_near(all->seconds, 8.05e-3 + 4e-3 + all->cost.sent / 1e6);
    is_near(all->cost.sent, ddp->cost.sent);
    is_near(all->seconds - ddp->seconds, 2.0 / 3 * 8.05e-3);
    is_near(of(&list, "gather-scatter")->cost.sent, 4 * all->cost.sent);
    is_near(of(&list, "local-sgd")->cost.sent, all->cost.sent / 8);
    /* The fastest has no replicas: a lost worker would cost more than a step. */
    assert_true(of(&list, "ring:replicate=off")->seconds < list.choice->seconds);
    assert_true(list.choice->cost.exact && !list.choice->cost.frail);
    /* Of two servers each gets both slices of the three other workers, and one slice of weights. */
    is_near(of(&list, "ps")->cost.sent, (3 * 2 + 1) / 2.0 / 1.5 * all->cost.sent);
    train_forecasts_fini(&list);
    train_session_close(&s);
}

/* A budget that only strategies which divide the state keep within. */
static void test_budget(void **state)
{
    struct train_job j = job();
    struct train_setting tight = setting;
    struct train_session s;
    struct train_forecasts list;
    double least, most;

    (void)state;
    j.model = "mlp:1024x12";
    tight.workers = 4;
    assert_int_equal(train_forecast_open(&j, &s), BASE_OK);
    assert_int_equal(train_forecast_make(&s, &tight, true, &list), BASE_OK);
    least = of(&list, "ring:replicate=off")->worker;
    most = of(&list, "ddp")->worker;
    assert_true(least < most);
    train_forecasts_fini(&list);
    tight.budget = least * 1.01;
    assert_int_equal(train_forecast_make(&s, &tight, true, &list), BASE_OK);
    assert_false(of(&list, "ddp")->fits);
    assert_true(of(&list, "ring:replicate=off")->fits);
    /* Less than two copies of the state take: a choice that does not heal, for want of another. */
    assert_non_null(list.choice);
    assert_true(list.choice->fits && list.choice->cost.exact && list.choice->cost.frail);
    train_forecasts_fini(&list);
    tight.budget = most * 0.9;
    assert_int_equal(train_forecast_make(&s, &tight, true, &list), BASE_OK);
    assert_true(of(&list, "zero:stage=3")->fits && of(&list, "zero:stage=3")->cost.frail);
    assert_true(list.choice->fits && !list.choice->cost.frail);
    train_forecasts_fini(&list);
    tight.budget = 1;
    calls = 0;
    assert_int_equal(train_forecast_make(&s, &tight, false, &list), BASE_OK);
    assert_null(list.choice);
    assert_int_equal(calls, 0);
    train_forecasts_fini(&list);
    assert_int_equal(train_forecast_model(&s, &j, "mlp:8x1"), BASE_OK);
    assert_int_equal(train_forecast_make(&s, &setting, false, &list), BASE_OK);
    assert_true(of(&list, "ddp")->worker < least);
    train_forecasts_fini(&list);
    train_session_close(&s);
}

static void test_what_is_not_planned(void **state)
{
    struct train_job j = job();
    struct train_session s;

    (void)state;
    j.model = "mf";
    assert_int_equal(train_forecast_open(&j, &s), BASE_ERR_USAGE);
    train_session_close(&s);
    j.model = "lda";
    assert_int_equal(train_forecast_open(&j, &s), BASE_ERR_USAGE);
    train_session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_what_is_not_planned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
