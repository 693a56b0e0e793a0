/* SPDX-License-Identifier: MIT
 *
 * What holds for every rating model and each of its examples: the same bits for any number of
 * threads and any division of rows, other bits for another seed, guesses on the scale, unknown
 * users and items, new users; and errors in one sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "recsys/model.h"
#include "support/fitted.h"

enum { USERS = 120, ITEMS = 90, EACH = 30 };

static struct rated rated;

static void fit_open(struct fitted *f, const char *model, const char *options, int threads,
                     uint64_t seed)
{
    fitted_open(f, &rated, model, options, threads, seed);
}

/* A sweep in which each phase's rows are computed in `parts` ranges, the last one first. */
static void divided_sweep(struct recsys_fit *fit, uint32_t parts)
{
    for (int p = 0; p < fit->phase_count; p++) {
        const uint32_t rows = fit->phases[p].rows;

        assert_int_equal(recsys_prepare(fit, p), BASE_OK);
        for (uint32_t part = parts; part-- > 0;)
            recsys_run(fit, p, rows * part / parts, rows * (part + 1) / parts);
    }
    assert_int_equal(recsys_finish(fit), BASE_OK);
}

static void train(struct fitted *f, uint32_t parts)
{
    if (f->fit->model->batches)
        fitted_train(f);
    for (int64_t s = 0; s < f->fit->sweeps; s++)
        if (parts == 1)
            assert_int_equal(recsys_sweep(f->fit), BASE_OK);
        else
            divided_sweep(f->fit, parts);
}

static void assert_same(const struct recsys_fit *a, const struct recsys_fit *b)
{
    assert_int_equal(a->buffer_count, b->buffer_count);
    for (int i = 0; i < a->buffer_count; i++) {
        const struct recsys_buffer *x = &a->buffers[i], *y = &b->buffers[i];

        assert_string_equal(x->name, y->name);
        if (memcmp(x->at, y->at, (size_t)x->rows * x->width * sizeof(float)) != 0)
            fail_msg("%s: the buffer %s differs", a->model->name, x->name);
    }
}

typedef void check(const char *model, const char *example);

static void for_each_example(check *each)
{
    for (size_t i = 0; i < recsys_model_count; i++) {
        const struct recsys_model *m = recsys_model_registry[i];

        assert_non_null(m->help);
        for (const char *const *example = m->examples; *example != NULL; example++)
            each(m->name, *example);
    }
}

static void same_bits(const char *model, const char *example)
{
    static const struct {
        int threads;
        uint32_t parts;
    } ways[] = {{2, 1}, {3, 1}, {1, 3}, {2, 7}};
    struct fitted one, other;

    fit_open(&one, model, example, 1, 5);
    train(&one, 1);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        fit_open(&other, model, example, ways[i].threads, 5);
        train(&other, ways[i].parts);
        assert_same(one.fit, other.fit);
        fitted_close(&other);
    }
    fitted_close(&one);
}

static void test_same_bits(void **state)
{
    (void)state;
    for_each_example(same_bits);
}

static double rmse(const struct recsys_fit *fit, const struct recsys_rows *rows)
{
    struct recsys_score score = {0};

    assert_int_equal(recsys_score(fit, rows, 0, rows->rows, &score), BASE_OK);
    assert_true(score.count == (double)rows->count);
    assert_true(score.absolute > 0 && score.absolute < 4 * score.count);
    return sqrt(score.squared / score.count);
}

/* Scores of parts add up to that of the whole, to the last bit. */
static void scores_add_up(const struct recsys_fit *fit)
{
    struct recsys_score whole = {0}, parts = {0};

    assert_int_equal(recsys_score(fit, &rated.test, 0, USERS, &whole), BASE_OK);
    assert_int_equal(recsys_score(fit, &rated.test, 0, 50, &parts), BASE_OK);
    assert_int_equal(recsys_score(fit, &rated.test, 50, USERS, &parts), BASE_OK);
    assert_true(whole.count == parts.count);
    assert_true(whole.squared == parts.squared);
    assert_true(whole.absolute == parts.absolute);
}

/* Of guesses that are always the mean, or of an implicit model that prefers nothing. */
static double plain_rmse(const struct recsys_fit *fit, const struct recsys_rows *rows)
{
    double sum = 0;

    for (uint64_t k = 0; k < rows->count; k++)
        sum += fit->model->implicit
                   ? 1
                   : pow((double)recsys_value(&rated.scale, rows, k) - (double)fit->mean, 2);
    return sqrt(sum / (double)rows->count);
}

static void learns(const char *model, const char *example)
{
    struct fitted f;
    double before, after;

    fit_open(&f, model, example, 2, 5);
    before = plain_rmse(f.fit, &rated.test);
    train(&f, 1);
    after = rmse(f.fit, &rated.test);
    scores_add_up(f.fit);
    if (!(after < 0.85 * before))
        fail_msg("%s:%s: RMSE %.4f untrained, %.4f trained", model, example, before, after);
    fitted_close(&f);
}

static void test_learns(void **state)
{
    (void)state;
    for_each_example(learns);
}

static void in_bounds(const struct recsys_fit *fit, struct recsys_guess guess)
{
    assert_true(isfinite(guess.value));
    if (!fit->model->implicit)
        assert_true(guess.value >= 0.5f && guess.value <= 5.0f);
    assert_true(isnan(guess.deviation) || guess.deviation > 0);
}

static void answers(const char *model, const char *example)
{
    struct fitted f;

    fit_open(&f, model, example, 2, 5);
    for (int trained = 0; trained < 2; trained++) {
        for (uint32_t u = 0; u < USERS; u += 7)
            for (uint32_t i = 0; i < ITEMS; i += 5)
                in_bounds(f.fit, recsys_predict(f.fit, u, i, i * 86400));
        in_bounds(f.fit, recsys_predict(f.fit, RECSYS_UNKNOWN, 3, 0));
        in_bounds(f.fit, recsys_predict(f.fit, 3, RECSYS_UNKNOWN, 0));
        in_bounds(f.fit, recsys_predict(f.fit, RECSYS_UNKNOWN, RECSYS_UNKNOWN, 86400));
        train(&f, 1);
    }
    fitted_close(&f);
}

static void test_answers(void **state)
{
    (void)state;
    for_each_example(answers);
}

/* ---- new users ---- */

/* The ratings of a known user as those of a new one. */
static uint32_t ratings_of(uint32_t user, struct recsys_rating *ratings)
{
    const struct recsys_rows *rows = &rated.by_user;
    uint32_t n = 0;

    for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++)
        ratings[n++] = (struct recsys_rating){rows->column[k], recsys_value(&rated.scale, rows, k),
                                              rows->time[k]};
    return n;
}

/* Folds a known user in and compares what its row says with what the user's own row says. */
static void folds(const char *model, const char *example)
{
    struct fitted f;
    double own = 0, folded = 0, apart = 0, count = 0;
    float *row = NULL;

    fit_open(&f, model, example, 1, 5);
    train(&f, 1);
    assert_int_equal(base_tensor(recsys_row_floats(f.fit), sizeof *row, "", &row), BASE_OK);
    for (uint32_t u = 0; u < USERS; u++) {
        struct recsys_rating ratings[ITEMS];
        const struct recsys_rows *test = &rated.test;

        assert_int_equal(recsys_fold(f.fit, ratings, ratings_of(u, ratings), row), BASE_OK);
        for (uint64_t k = test->start[u]; k < test->start[u + 1]; k++) {
            const double truth =
                f.fit->model->implicit ? 1 : (double)recsys_value(&rated.scale, test, k);
            const double a =
                (double)recsys_predict(f.fit, u, test->column[k], test->time[k]).value - truth;
            const double b =
                (double)recsys_predict_row(f.fit, row, test->column[k], test->time[k]).value -
                truth;

            own += a * a;
            folded += b * b;
            apart += (a - b) * (a - b);
            count++;
        }
    }
    own = sqrt(own / count);
    folded = sqrt(folded / count);
    if (!(folded < own + 0.05 && sqrt(apart / count) < 0.35))
        fail_msg("%s:%s: RMSE %.4f of known users, %.4f folded in, %.4f apart", model, example, own,
                 folded, sqrt(apart / count));
    base_free(row);
    fitted_close(&f);
}

static void test_fold(void **state)
{
    (void)state;
    for_each_example(folds);
}

/* The parts of an explanation and its rest are the guess for the folded user. */
static void explains(const char *model, const char *example)
{
    struct fitted f;
    float *row = NULL;

    fit_open(&f, model, example, 1, 5);
    train(&f, 1);
    assert_int_equal(base_tensor(recsys_row_floats(f.fit), sizeof *row, "", &row), BASE_OK);
    for (uint32_t u = 0; u < USERS; u += 17) {
        struct recsys_rating ratings[ITEMS];
        const uint32_t n = ratings_of(u, ratings);

        assert_int_equal(recsys_fold(f.fit, ratings, n, row), BASE_OK);
        for (uint32_t i = 0; i < ITEMS; i += 13) {
            float parts[ITEMS], rest, sum;

            assert_int_equal(recsys_explain(f.fit, ratings, n, i, parts, &rest), BASE_OK);
            sum = rest;
            for (uint32_t j = 0; j < n; j++)
                sum += parts[j];
            if (!(fabsf(sum - f.fit->model->guess(f.fit, row, i, 0).value) < 2e-3f))
                fail_msg("%s:%s: user %u, item %u: %g explained, %g guessed", model, example, u, i,
                         (double)sum, (double)f.fit->model->guess(f.fit, row, i, 0).value);
        }
    }
    base_free(row);
    fitted_close(&f);
}

static void test_explain(void **state)
{
    (void)state;
    for_each_example(explains);
}

/* A part is what its rating adds: a value above it moves the guess by the part's share. */
static void test_explain_is_linear(void **state)
{
    struct fitted f;
    struct recsys_rating ratings[ITEMS];
    float parts[ITEMS], more[ITEMS], rest, other, row[16], shifted[16];
    uint32_t n;

    (void)state;
    fit_open(&f, "mf", "k=16,sweeps=10", 1, 5);
    train(&f, 1);
    n = ratings_of(3, ratings);
    assert_int_equal(recsys_explain(f.fit, ratings, n, 7, parts, &rest), BASE_OK);
    assert_int_equal(recsys_fold(f.fit, ratings, n, row), BASE_OK);
    ratings[4].value += 1;
    assert_int_equal(recsys_explain(f.fit, ratings, n, 7, more, &other), BASE_OK);
    assert_int_equal(recsys_fold(f.fit, ratings, n, shifted), BASE_OK);
    assert_true(fabsf(rest - other) < 1e-6f);
    for (uint32_t j = 0; j < n; j++)
        assert_true(j == 4 || fabsf(parts[j] - more[j]) < 1e-5f);
    assert_true(fabsf(more[4] - parts[4] -
                      (f.fit->model->guess(f.fit, shifted, 7, 0).value -
                       f.fit->model->guess(f.fit, row, 7, 0).value)) < 1e-4f);
    assert_true(more[4] != parts[4]);
    fitted_close(&f);
}

static void test_fold_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < recsys_model_count; i++) {
        const struct recsys_rating wrong[] = {{ITEMS, 3, 0}}, nan[] = {{0, NAN, 0}};
        struct fitted f;
        float *row = NULL;

        fit_open(&f, recsys_model_registry[i]->name, recsys_model_registry[i]->examples[0], 1, 5);
        train(&f, 1);
        assert_int_equal(base_tensor(recsys_row_floats(f.fit), sizeof *row, "", &row), BASE_OK);
        assert_int_equal(recsys_fold(f.fit, NULL, 0, row), BASE_OK);
        in_bounds(f.fit, recsys_predict_row(f.fit, row, 3, 0));
        assert_int_equal(recsys_fold(f.fit, wrong, 1, row), BASE_ERR_DATA);
        assert_non_null(strstr(base_message(), "the item is not known"));
        assert_int_equal(recsys_fold(f.fit, nan, 1, row), BASE_ERR_DATA);
        base_free(row);
        fitted_close(&f);
    }
}

/* ---- values ---- */

/* The same rows with values in place of codes. */
static struct recsys_rows with_values(const struct recsys_rows *rows)
{
    struct recsys_rows plain = *rows;
    float *value = base_calloc(rows->count, sizeof *value);

    for (uint64_t k = 0; k < rows->count; k++)
        value[k] = recsys_value(&rated.scale, rows, k);
    plain.code = NULL;
    plain.value = value;
    return plain;
}

/* A scale without levels gives the same model, up to the rounding of the mean. */
static void without_levels(const char *model, const char *example)
{
    const struct rated coded = rated;
    struct fitted a, b;

    if (strstr(example, "ordinal") != NULL)
        return;
    fit_open(&a, model, example, 1, 5);
    train(&a, 1);
    rated.by_user = with_values(&coded.by_user);
    rated.by_item = with_values(&coded.by_item);
    rated.scale.levels = 0;
    fit_open(&b, model, example, 2, 5);
    train(&b, 1);
    for (uint32_t u = 0; u < USERS; u += 3)
        for (uint32_t i = 0; i < ITEMS; i += 3)
            assert_true(fabsf(recsys_predict(a.fit, u, i, 86400).value -
                              recsys_predict(b.fit, u, i, 86400).value) < 0.02f);
    fitted_close(&b);
    base_free((void *)(uintptr_t)rated.by_user.value);
    base_free((void *)(uintptr_t)rated.by_item.value);
    rated = coded;
    fitted_close(&a);
}

/* ---- seeds and errors ---- */

static void test_seeds(void **state)
{
    static const char *const random[] = {"mf", "bmf", "ials"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fitted a, b;

        fit_open(&a, random[i], "k=16,sweeps=2", 1, 5);
        fit_open(&b, random[i], "k=16,sweeps=2", 1, 6);
        train(&a, 1);
        train(&b, 1);
        assert_true(recsys_predict(a.fit, 1, 1, 0).value != recsys_predict(b.fit, 1, 1, 0).value);
        fitted_close(&a);
        fitted_close(&b);
    }
}

static void refuse(const char *text, const char *sentence)
{
    const struct recsys_model *model;
    void *options;

    assert_int_equal(recsys_model_find(text, &model, &options), BASE_ERR_USAGE);
    assert_null(options);
    if (strstr(base_message(), sentence) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", text, base_message(), sentence);
}

static void test_bad_options(void **state)
{
    (void)state;
    refuse("bfm", "unknown rating model 'bfm'; did you mean 'bmf'?");
    refuse("mf:rank=3", "model mf has no option 'rank'");
    refuse("mf:k", "model mf: k takes a value, k=N");
    refuse("mf:k=4", "k");
    refuse("bmf:side=both", "side");
    refuse("bias-gd:rate=2", "rate");
}

static void refuse_fit(const char *text, const struct recsys_rows *by_user, base_status code,
                       const char *sentence)
{
    struct recsys_setup setup = {
        .scale = &rated.scale, .by_user = by_user, .by_item = &rated.by_item, .seed = 1};
    struct recsys_fit *fit;
    struct base_team *team;
    void *options;

    assert_int_equal(base_team_new(1, &team), BASE_OK);
    assert_int_equal(recsys_model_find(text, &setup.model, &options), BASE_OK);
    setup.options = options;
    setup.team = team;
    assert_int_equal(recsys_fit_new(&setup, &fit), code);
    assert_null(fit);
    if (strstr(base_message(), sentence) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", text, base_message(), sentence);
    base_free(options);
    base_team_free(team);
}

static void test_bad_data(void **state)
{
    struct recsys_rows none = rated.by_user, timeless = rated.by_user;
    const uint64_t start[USERS + 1] = {0};

    (void)state;
    none.start = start;
    none.count = 0;
    timeless.time = NULL;
    for (size_t i = 0; i < recsys_model_count; i++)
        refuse_fit(recsys_model_registry[i]->name, &none, BASE_ERR_DATA, "there are no ratings");
    refuse_fit("bmf:time=7", &timeless, BASE_ERR_USAGE, "needs ratings with times");
    refuse_fit("bmf:k=12", &rated.by_user, BASE_ERR_USAGE, "multiple of 8");
    refuse_fit("mf:k=12", &rated.by_user, BASE_ERR_USAGE, "multiple of 8");
    refuse_fit("ials:k=12", &rated.by_user, BASE_ERR_USAGE, "multiple of 8");
    refuse_fit("bmf:time=0.5", &rated.by_user, BASE_ERR_USAGE, "time is 0 or at least 1 day");
    refuse_fit("mf:rate=0.5,lambda=2", &rated.by_user, BASE_ERR_USAGE, "lambda times rate is 1,");
    refuse_fit("mf:rate=1,bias-lambda=3", &rated.by_user, BASE_ERR_USAGE, "rate is 3, not below");
    rated.scale.lowest = -2;
    refuse_fit("ials", &rated.by_user, BASE_ERR_DATA, "not -2");
    rated.scale.lowest = 0.5f;
}

static void test_without_levels(void **state)
{
    (void)state;
    for_each_example(without_levels);
    rated.scale.levels = 0;
    refuse_fit("bmf:likelihood=ordinal", &rated.by_user, BASE_ERR_USAGE, "scales of 2 to 16");
    rated.scale.levels = 10;
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
        cmocka_unit_test(test_same_bits),      cmocka_unit_test(test_learns),
        cmocka_unit_test(test_answers),        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_explain),        cmocka_unit_test(test_explain_is_linear),
        cmocka_unit_test(test_fold_nothing),   cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_bad_options),    cmocka_unit_test(test_bad_data),
        cmocka_unit_test(test_without_levels),
    };

    return cmocka_run_group_tests(tests, make_ratings, free_ratings);
}
