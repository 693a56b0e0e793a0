/* SPDX-License-Identifier: MIT
 *
 * Every figure of recsys/quality.h against a plain reference in doubles that sorts all items.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "recsys/quality.h"
#include "support/fitted.h"

enum { USERS = 130, ITEMS = 90, EACH = 25, N = 7, LEAST = 25 };

static struct rated rated;

static const float *row_of(const struct recsys_fit *fit, uint32_t user)
{
    return fit->buffers[fit->answers].at + (size_t)user * fit->buffers[fit->answers].width;
}

static bool is_rated(const struct recsys_rows *rows, uint32_t user, uint32_t item, float *value_p)
{
    for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++)
        if (rows->column[k] == item) {
            *value_p = recsys_value(&rated.scale, rows, k);
            return true;
        }
    return false;
}

static bool is_rare(uint32_t item)
{
    return rated.by_item.start[item + 1] - rated.by_item.start[item] < LEAST;
}

/* How many items that the user has not rated in training come before this one. */
static uint32_t place_of(const struct recsys_fit *fit, uint32_t user, uint32_t item)
{
    const float own = fit->model->guess(fit, row_of(fit, user), item, 0).value;
    uint32_t before = 0;
    float unused;

    for (uint32_t i = 0; i < ITEMS; i++) {
        const float score = fit->model->guess(fit, row_of(fit, user), i, 0).value;

        before += !is_rare(i) && !is_rated(&rated.by_user, user, i, &unused) &&
                  (score > own || (score == own && i < item));
    }
    return before;
}

static void plain_lists(const struct recsys_fit *fit, double relevant_from,
                        struct recsys_quality *q)
{
    bool listed[ITEMS] = {0};

    for (uint32_t u = 0; u < USERS; u++) {
        double hits = 0, gain = 0, best = 0;
        uint32_t relevant = 0;
        float value;
        bool seen[ITEMS] = {0};

        for (uint32_t i = 0; i < ITEMS; i++) {
            const bool liked = is_rated(&rated.test, u, i, &value) &&
                               (fit->model->implicit || (double)value >= relevant_from);
            const bool open = !is_rare(i) && !is_rated(&rated.by_user, u, i, &value);

            relevant += liked;
            seen[i] = open && place_of(fit, u, i) < N;
            if (liked && seen[i]) {
                hits++;
                gain += log(2) / log(place_of(fit, u, i) + 2);
            }
        }
        if (relevant == 0)
            continue;
        for (uint32_t i = 0; i < ITEMS; i++)
            listed[i] |= seen[i];
        for (uint32_t r = 0; r < relevant && r < N; r++)
            best += log(2) / log(r + 2);
        q->users++;
        q->precision += hits / N;
        q->recall += hits / relevant;
        q->ndcg += gain / best;
    }
    for (uint32_t i = 0; i < ITEMS; i++)
        q->coverage += listed[i] / (double)ITEMS;
    q->precision /= (double)q->users;
    q->recall /= (double)q->users;
    q->ndcg /= (double)q->users;
}

/* Sums of errors are rounded user by user (recsys_score), by less than this. */
static void assert_near(double a, double b)
{
    if (!(fabs(a - b) < 1e-7))
        fail_msg("%.12g is not %.12g", a, b);
}

static void judged(const char *model, const char *example, int threads)
{
    struct recsys_quality q, plain = {0};
    struct fitted f;
    double absolute = 0, squared = 0;
    uint64_t confusion[RECSYS_QUALITY_BINS][RECSYS_QUALITY_BINS] = {0};

    fitted_open(&f, &rated, model, example, threads, 5);
    fitted_train(&f);
    assert_int_equal(recsys_quality(f.fit, &rated.by_user, &rated.test, N, LEAST, NAN, &q),
                     BASE_OK);
    for (uint32_t u = 0; u < USERS; u++)
        for (uint64_t k = rated.test.start[u]; k < rated.test.start[u + 1]; k++) {
            const float guess =
                recsys_predict(f.fit, u, rated.test.column[k], rated.test.time[k]).value;
            const double truth = (double)recsys_value(&rated.scale, &rated.test, k);
            const double error = (double)guess - (f.fit->model->implicit ? 1 : truth);

            absolute += fabs(error);
            squared += error * error;
            if (!f.fit->model->implicit) /* levels are 0.5, 1 … 5; from below, as the code does */
                confusion[lround(2 * truth) - 1][(int)ceil(2 * (double)guess - 0.5) - 1]++;
        }
    assert_int_equal(q.count, rated.test.count);
    assert_near(q.mae, absolute / (double)rated.test.count);
    assert_near(q.rmse, sqrt(squared / (double)rated.test.count));
    assert_int_equal(q.bins, 10);
    assert_memory_equal(q.confusion, confusion, sizeof confusion);
    assert_true(q.relevant > 3.5f && q.relevant <= 4);
    plain_lists(f.fit, 4, &plain);
    assert_int_equal(q.users, plain.users);
    assert_true(q.users > USERS / 2);
    assert_near(q.precision, plain.precision);
    assert_near(q.recall, plain.recall);
    assert_near(q.ndcg, plain.ndcg);
    assert_near(q.coverage, plain.coverage);
    fitted_close(&f);
}

static void test_every_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < recsys_model_count; i++)
        judged(recsys_model_registry[i]->name, recsys_model_registry[i]->examples[0],
               1 + (int)(i % 3));
}

/* Without levels the scale is cut into equal parts. */
static void test_bins(void **state)
{
    struct recsys_quality q = {.bins = 3, .bin = {1, 2, 5}};

    (void)state;
    assert_int_equal(recsys_quality_bin(&q, -7), 0);
    assert_int_equal(recsys_quality_bin(&q, 1.6f), 1);
    assert_int_equal(recsys_quality_bin(&q, 3.6f), 2);
    assert_int_equal(recsys_quality_bin(&q, 9), 2);
}

/* Nothing is as good as that: no user has a relevant item, and means over none are no numbers. */
static void test_nothing_relevant(void **state)
{
    struct recsys_quality q;
    struct fitted f;

    (void)state;
    fitted_open(&f, &rated, "bias-stat", "", 1, 5);
    fitted_train(&f);
    assert_int_equal(recsys_quality(f.fit, &rated.by_user, &rated.test, N, 0, 6, &q), BASE_OK);
    assert_int_equal(q.users, 0);
    assert_true(isnan(q.precision) && isnan(q.ndcg) && q.coverage == 0);
    assert_int_equal(recsys_quality(f.fit, &rated.by_user, &rated.test, 1000, 0, 4, &q), BASE_OK);
    assert_int_equal(q.n, ITEMS);
    assert_near(q.recall, 1); /* all items are in the list */
    fitted_close(&f);
}

static int set_up(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rated_fini(&rated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model),
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_nothing_relevant),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
