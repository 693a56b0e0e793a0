/* SPDX-License-Identifier: MIT
 *
 * What a learning rate range test makes of losses: curves whose fall and end are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "lab/rate.h"

enum { STEPS = 200 };

/* Rates from 1e-6 to 10; a loss for each by its logarithm. */
static struct lab_rate judged(double (*loss)(double decade, size_t step))
{
    struct lab_rate r = {.low = 1e-6, .high = 10, .steps = STEPS, .count = STEPS};

    r.rates = base_calloc(STEPS, sizeof *r.rates);
    r.losses = base_calloc(STEPS, sizeof *r.losses);
    r.smooth = base_calloc(STEPS, sizeof *r.smooth);
    for (size_t i = 0; i < STEPS; i++) {
        double decade = -6 + 7.0 * (double)i / (STEPS - 1);

        r.rates[i] = pow(10, decade);
        r.losses[i] = loss(decade, i);
    }
    lab_rate_judge(&r);
    return r;
}

/* Falls around 1e-3 from 2.3 to 0.3, with noise, and explodes above 0.1. */
static double usual(double decade, size_t step)
{
    double noise = 0.05 * sin(7.3 * (double)step);

    return 0.3 + 2 / (1 + exp(4 * (decade + 3))) + noise +
           (decade > -1 ? exp(9 * (decade + 1)) : 0);
}

static double flat(double decade, size_t step)
{
    (void)decade;
    (void)step;
    return 2.3;
}

static double rising(double decade, size_t step)
{
    (void)step;
    return 2 + 0.1 * decade;
}

static double infinite(double decade, size_t step)
{
    return decade > -1 ? INFINITY : usual(decade, step);
}

static void test_usual(void **state)
{
    struct lab_rate r = judged(usual);

    (void)state;
    assert_true(r.diverged && r.count < STEPS && r.rates[r.count - 1] > 0.1);
    assert_true(r.suggested > 5e-4 && r.suggested < 2e-3);
    assert_true(r.lowest > 0.01 && r.lowest < 0.2);
    for (size_t i = 20; i < r.count / 2; i++) /* the noise is gone */
        assert_true(fabs(r.smooth[i] - usual(log10(r.rates[i]), i)) < 0.15);
    lab_rate_fini(&r);
    r = judged(infinite);
    assert_true(r.diverged && r.suggested > 5e-4 && r.suggested < 2e-3);
    lab_rate_fini(&r);
}

static void test_no_fall(void **state)
{
    struct lab_rate r = judged(flat);

    (void)state;
    assert_true(isnan(r.suggested) && isnan(r.lowest) && !r.diverged && r.count == STEPS);
    lab_rate_fini(&r);
    r = judged(rising);
    assert_true(isnan(r.suggested) && !r.diverged);
    lab_rate_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual),
        cmocka_unit_test(test_no_fall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
