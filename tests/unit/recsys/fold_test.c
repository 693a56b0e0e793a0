/* SPDX-License-Identifier: MIT
 *
 * Users who come after the training: folded in they are served about as well as by a training that
 * has them. Every fifth user is left out, its training ratings are folded in, and its tests are
 * guessed; RMSE may be 0.01 above that of a training with all users.
 *
 *     unit-recsys-fold_test [RATINGS [MODEL:OPTIONS]]
 *
 * Without an argument: made-up ratings and small models. With ratings, of ml-latest-small say: the
 * models as they are by default, or the one that is named; a table on standard output, and minutes
 * of time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/model.h"
#include "recsys/split.h"
#include "support/fitted.h"

enum { APART = 5 };                /* every so many-th user is left out */
static const double WITHIN = 0.01; /* of retraining */
static const double WORTH = 0.02;  /* better than an unknown user's guesses by this */

struct served {
    double folded, retrained, unknown; /* RMSE */
};

static const struct model {
    const char *name, *small, *whole; /* options for made-up and for real ratings */
} models[] = {
    {"bias-stat", "", ""},
    {"bias-gd", "", ""},
    {"bias-als", "", ""},
    {"mf", "k=16,sweeps=20", ""},
    {"bmf", "k=16,sweeps=80", ""},
    {"bmf", "k=16,sweeps=80,side=none,noise=off", "side=none,noise=off"},
    /* At 80 sweeps its chain has not settled, and the two trainings differ. */
    {"bmf", "k=16,sweeps=250,likelihood=ordinal", "likelihood=ordinal"},
    {"bmf", "k=16,sweeps=80,time=30", "time=30"},
    {"ials", "k=16", ""},
    {"ncf", "size=8,layers=16x8", ""},
};

static struct rated rated;
static const char *only; /* "bmf:time=30"; NULL: all */

/* Every fifth user's ratings to part 1. */
static void deal_users(const void *context, uint32_t user, uint8_t *part_of)
{
    const struct recsys_rows *rows = context;

    memset(part_of, user % APART == 0, rows->start[user + 1] - rows->start[user]);
}

static double error_of(const struct recsys_fit *fit, const struct recsys_guess *guess, uint64_t k)
{
    const float truth = fit->model->implicit ? 1 : recsys_value(&rated.scale, &rated.test, k);

    return (double)(guess->value - truth);
}

static uint32_t ratings_of(uint32_t user, struct recsys_rating *ratings)
{
    const struct recsys_rows *rows = &rated.by_user;
    uint32_t n = 0;

    for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++)
        ratings[n++] = (struct recsys_rating){rows->column[k], recsys_value(&rated.scale, rows, k),
                                              rows->time[k]};
    return n;
}

/* Trained without every fifth user. */
static void fold_in(const char *model, const char *options, struct served *served)
{
    struct rated old = rated;
    struct recsys_rows parts[2];
    struct fitted f;
    double folded = 0, unknown = 0, count = 0;
    struct recsys_rating *ratings = base_calloc(rated.by_user.columns, sizeof *ratings);
    float *row = NULL;

    assert_int_equal(recsys_deal(&rated.by_user, deal_users, &rated.by_user, true, 1, 2, parts),
                     BASE_OK);
    old.by_user = parts[0];
    assert_int_equal(recsys_transpose(&old.by_user, true, 1, &old.by_item), BASE_OK);
    fitted_open(&f, &old, model, options, 2, 5);
    fitted_train(&f);
    assert_int_equal(base_tensor(recsys_row_floats(f.fit), sizeof *row, "", &row), BASE_OK);
    for (uint32_t u = 0; u < rated.by_user.rows; u += APART) {
        assert_int_equal(recsys_fold(f.fit, ratings, ratings_of(u, ratings), row), BASE_OK);
        for (uint64_t k = rated.test.start[u]; k < rated.test.start[u + 1]; k++, count++) {
            const uint32_t item = rated.test.column[k], time = rated.test.time[k];
            const struct recsys_guess known = recsys_predict_row(f.fit, row, item, time);
            const struct recsys_guess other = recsys_predict_row(f.fit, NULL, item, time);

            folded += pow(error_of(f.fit, &known, k), 2);
            unknown += pow(error_of(f.fit, &other, k), 2);
        }
    }
    base_free(row);
    base_free(ratings);
    fitted_close(&f);
    recsys_rows_fini(&parts[0]);
    recsys_rows_fini(&parts[1]);
    recsys_rows_fini(&old.by_item);
    served->folded = sqrt(folded / count);
    served->unknown = sqrt(unknown / count);
}

static void retrain(const char *model, const char *options, struct served *served)
{
    struct fitted f;
    struct recsys_score score = {0};

    fitted_open(&f, &rated, model, options, 2, 5);
    fitted_train(&f);
    for (uint32_t u = 0; u < rated.by_user.rows; u += APART)
        assert_int_equal(recsys_score(f.fit, &rated.test, u, u + 1, &score), BASE_OK);
    fitted_close(&f);
    served->retrained = sqrt(score.squared / score.count);
}

/* False: folding in is too bad, which it says. */
static bool compare(const char *model, const char *options)
{
    struct served served;
    char name[64];

    snprintf(name, sizeof name, "%s:%s", model, options);
    if (only != NULL && strcmp(name, only) != 0)
        return true;
    fold_in(model, options, &served);
    retrain(model, options, &served);
    print_message("%s:%-24s folded in %.4f, retrained %.4f, unknown %.4f\n", model, options,
                  served.folded, served.retrained, served.unknown);
    return served.folded < served.retrained + WITHIN && served.folded < served.unknown - WORTH;
}

static void test_made_up(void **state)
{
    int bad = 0;

    (void)state;
    rated_make(&rated, 800, 300, 30);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        bad += !compare(models[i].name, models[i].small);
    rated_fini(&rated);
    assert_int_equal(bad, 0);
}

/* *state: the path. */
static void test_file(void **state)
{
    struct recsys_ratings *ratings = NULL;
    const struct recsys_divide how = {.split = "0.2", .threads = 2, .by_item = true, .times = true};
    struct recsys_division parts;
    int bad = 0;

    if (recsys_ratings_open(*state, &(struct recsys_options){.threads = 2}, &ratings) != BASE_OK ||
        recsys_divide(ratings, &how, &parts) != BASE_OK)
        fail_msg("%s", base_message());
    rated = (struct rated){ratings->scale, parts.by_user, parts.by_item, parts.test};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        bad += !compare(models[i].name, models[i].whole);
    recsys_division_fini(&parts);
    recsys_ratings_close(ratings);
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest made_up[] = {cmocka_unit_test(test_made_up)};
    const struct CMUnitTest file[] = {cmocka_unit_test_prestate(test_file, argv[1])};

    only = argc > 2 ? argv[2] : NULL;
    return argc > 1 ? cmocka_run_group_tests(file, NULL, NULL)
                    : cmocka_run_group_tests(made_up, NULL, NULL);
}
