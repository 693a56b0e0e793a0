/* SPDX-License-Identifier: MIT
 *
 * Implicit least squares against dense equations in double precision: every user against every
 * item, with its confidence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gauss.h"
#include "recsys/model.h"
#include "support/rated.h"

enum { USERS = 60, ITEMS = 70, EACH = 20, K = 16 };
static const double ALPHA = 2, LAMBDA = 0.3;

static struct rated rated;

struct fitted {
    struct base_team *team;
    void *options;
    struct recsys_fit *fit;
};

static void fit_open(struct fitted *f, const char *text)
{
    struct recsys_setup setup = {
        .scale = &rated.scale, .by_user = &rated.by_user, .by_item = &rated.by_item, .seed = 3};

    assert_int_equal(base_team_new(2, &f->team), BASE_OK);
    assert_int_equal(recsys_model_find(text, &setup.model, &f->options), BASE_OK);
    setup.options = f->options;
    setup.team = f->team;
    assert_int_equal(recsys_fit_new(&setup, &f->fit), BASE_OK);
}

static void fit_close(struct fitted *f)
{
    recsys_fit_free(f->fit);
    base_free(f->options);
    base_team_free(f->team);
}

/* The row r of one side from the other's rows y (n,K). */
static void plain_row(const struct recsys_rows *rows, uint32_t r, const float *y, uint32_t n,
                      double *x)
{
    double a[K * K] = {0};
    uint64_t k = rows->start[r]; /* columns rise */

    memset(x, 0, K * sizeof *x);
    for (uint32_t c = 0; c < n; c++) {
        double confidence = 1, preference = 0;

        if (k < rows->start[r + 1] && rows->column[k] == c) {
            confidence += ALPHA * (double)recsys_value(&rated.scale, rows, k++);
            preference = 1;
        }
        for (int f = 0; f < K; f++) {
            x[f] += confidence * preference * (double)y[c * K + (uint32_t)f];
            for (int g = 0; g < K; g++)
                a[f * K + g] +=
                    confidence * (double)y[c * K + (uint32_t)f] * (double)y[c * K + (uint32_t)g];
        }
    }
    for (int f = 0; f < K; f++)
        a[f * K + f] += LAMBDA;
    assert_true(recsys_cholesky(a, K));
    recsys_forward(a, K, x);
    recsys_backward(a, K, x);
}

/* Both half-sweeps of the second sweep. */
static void against_plain(const char *text, double bound)
{
    struct fitted f;

    fit_open(&f, text);
    assert_int_equal(recsys_sweep(f.fit), BASE_OK);
    for (int phase = 0; phase < 2; phase++) {
        const struct recsys_rows *rows = phase == 0 ? &rated.by_user : &rated.by_item;

        assert_int_equal(recsys_prepare(f.fit, phase), BASE_OK);
        recsys_run(f.fit, phase, 0, rows->rows);
        for (uint32_t r = 0; r < rows->rows; r++) {
            double x[K];

            plain_row(rows, r, f.fit->buffers[1 - phase].at, rows->columns, x);
            for (int i = 0; i < K; i++) {
                const double got = (double)f.fit->buffers[phase].at[r * K + (uint32_t)i];

                if (!(fabs(got - x[i]) < bound))
                    fail_msg("%s, phase %d, row %u: %g instead of %g", text, phase, r, got, x[i]);
            }
        }
    }
    fit_close(&f);
}

static void test_exact(void **state)
{
    (void)state;
    against_plain("ials:k=16,cg=0,alpha=2,lambda=0.3", 1e-4);
}

/* As many steps as there are unknowns, and more against rounding. */
static void test_many_steps(void **state)
{
    (void)state;
    against_plain("ials:k=16,cg=40,alpha=2,lambda=0.3", 2e-3);
}

/* Few steps a sweep reach the same loss after some sweeps. */
static void test_few_steps(void **state)
{
    struct fitted exact, few;
    double a = 0, b = 0;

    (void)state;
    fit_open(&exact, "ials:k=16,cg=0,sweeps=20");
    fit_open(&few, "ials:k=16,cg=3,sweeps=20");
    for (int s = 0; s < 20; s++) {
        assert_int_equal(recsys_sweep(exact.fit), BASE_OK);
        assert_int_equal(recsys_sweep(few.fit), BASE_OK);
    }
    for (uint32_t u = 0; u < USERS; u++)
        for (uint32_t i = 0; i < ITEMS; i++) {
            double confidence = 1, wish = 0;

            for (uint64_t k = rated.by_user.start[u]; k < rated.by_user.start[u + 1]; k++)
                if (rated.by_user.column[k] == i) {
                    confidence += (double)recsys_value(&rated.scale, &rated.by_user, k);
                    wish = 1;
                }
            a += confidence * pow(wish - (double)recsys_predict(exact.fit, u, i, 0).value, 2);
            b += confidence * pow(wish - (double)recsys_predict(few.fit, u, i, 0).value, 2);
        }
    assert_true(fabs(a - b) < 0.05 * a);
    fit_close(&exact);
    fit_close(&few);
}

/* An item with more ratings than are gathered at once. Twelve items make equations of bad
 * condition. */
static void test_long_rows(void **state)
{
    (void)state;
    rated_fini(&rated);
    rated_make(&rated, 24000, 32, 24);
    assert_true(rated.by_item.start[1] > 16384);
    against_plain("ials:k=16,cg=40,alpha=2,lambda=0.3", 1e-2);
    against_plain("ials:k=16,cg=0,alpha=2,lambda=0.3", 1e-3);
}

static void test_negative(void **state)
{
    const struct recsys_rating one = {.item = 3, .value = -0.01f};
    struct fitted f;
    float row[K];

    (void)state;
    fit_open(&f, "ials:k=16");
    assert_int_equal(recsys_fold(f.fit, &one, 1, row), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "from 0 on, not -0.01"));
    fit_close(&f);
}

static int make_ratings(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    return 0;
}

static int free_ratings(void **state)
{
    (void)state;
    rated_fini(&rated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),     cmocka_unit_test(test_many_steps),
        cmocka_unit_test(test_few_steps), cmocka_unit_test(test_negative),
        cmocka_unit_test(test_long_rows), /* the last one: it makes other ratings */
    };

    return cmocka_run_group_tests(tests, make_ratings, free_ratings);
}
