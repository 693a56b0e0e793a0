/* SPDX-License-Identifier: MIT
 *
 * The parts of Gibbs sampling against plain double precision with the same random numbers: rows,
 * effects, noise; the prior against the moments of the rows; and guesses against kept samples. What
 * bins of time do not know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gibbs.h"
#include "recsys/model_private.h"
#include "support/rated.h"

enum { USERS = 150, ITEMS = 70, EACH = 25, K = 16 };

static struct rated rated;

struct fitted {
    struct base_team *team;
    void *options;
    struct recsys_fit *fit;
    struct gibbs *g;
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
    f->g = gibbs_of(f->fit);
}

static void fit_close(struct fitted *f)
{
    recsys_fit_free(f->fit);
    base_free(f->options);
    base_team_free(f->team);
}

static void sweeps(struct fitted *f, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(recsys_sweep(f->fit), BASE_OK);
}

static void assert_near(double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound * (1 + fabs(wanted))))
        fail_msg("got %.9g instead of %.9g", got, wanted);
}

/* ---- rows ---- */

/* What rating e of a row of `s` looks like: x (K), y; the weight of its noise. */
static void plain_rating(const struct fitted *f, const struct gibbs_side *s, uint32_t row,
                         uint64_t e, double *x, double *y, double *weight)
{
    const float *a = recsys_at(f->fit, f->g->side[s->first].factors, s->column[e]);
    const float *b = s->second >= 0
                         ? recsys_at(f->fit, f->g->side[s->second].factors, s->second_column[e])
                         : NULL;
    const uint64_t place = s->place != NULL ? s->place[e] : e;
    const uint32_t user = s == &f->g->side[GIBBS_USERS] ? row : s->column[e];

    *weight = f->g->user_noise >= 0 ? (double)*recsys_at(f->fit, f->g->user_noise, user) : 1;
    *y = f->g->latent != NULL
             ? (double)f->g->latent[place]
             : (double)recsys_value(f->fit->scale, s->rows, place) - (double)f->fit->mean;
    *y -= (double)a[f->g->side[s->first].own];
    for (int i = 0; i < K - 2; i++) {
        x[i] = (double)a[i] + (b != NULL ? (double)b[i] : 0);
        *y -= b != NULL ? (double)a[i] * (double)b[i] : 0;
    }
    if (b != NULL)
        *y -= (double)b[f->g->side[s->second].own];
    x[K - 2] = x[K - 1] = 0;
    x[s->own] = 1;
}

/* The draw of a row: A⁻¹ b + L⁻ᵀ z; and Σ e² of the ratings with it. */
static double plain_row(const struct fitted *f, int side, uint32_t row, double *out)
{
    const struct gibbs_side *s = &f->g->side[side];
    const double alpha = (double)recsys_at(f->fit, f->g->state, 0)[GIBBS_ALPHA];
    double a[K * K], x[K], y, weight, error = 0;
    float z[K];

    memcpy(a, s->lambda, sizeof a);
    for (int i = 0; i < K; i++) {
        out[i] = 0;
        for (int j = 0; j < K; j++) {
            const float *effect =
                s->effects >= 0 ? recsys_at(f->fit, s->effects, (size_t)j / 8) + 8 * row + j % 8
                                : NULL;

            out[i] += s->lambda[i * K + j] * (s->mu[j] + (effect ? (double)*effect : 0));
        }
    }
    for (uint64_t e = s->start[row]; e < s->start[row + 1]; e++) {
        plain_rating(f, s, row, e, x, &y, &weight);
        for (int i = 0; i < K; i++) {
            out[i] += alpha * weight * x[i] * y;
            for (int j = 0; j < K; j++)
                a[i * K + j] += alpha * weight * x[i] * x[j];
        }
    }
    recsys_row_normals(f->fit->seed, GIBBS_DRAW_ROW + (uint32_t)side, (uint32_t)f->fit->sweep, row,
                       K, z);
    assert_true(recsys_cholesky(a, K));
    recsys_forward(a, K, out);
    for (int i = 0; i < K; i++)
        out[i] += (double)z[i];
    recsys_backward(a, K, out);
    out[s->fixed] = side != GIBBS_TIMES;
    for (uint64_t e = s->start[row]; e < s->start[row + 1]; e++) {
        plain_rating(f, s, row, e, x, &y, &weight);
        for (int i = 0; i < K; i++)
            y -= x[i] * out[i];
        error += (side == GIBBS_USERS ? 1 : weight) * y * y;
    }
    return error;
}

static void one_rows(const char *text)
{
    struct fitted f;

    fit_open(&f, text);
    sweeps(&f, 5);
    for (int side = 0; side < f.g->sides; side++) {
        const struct gibbs_side *s = &f.g->side[side];
        double(*wanted)[K] = base_calloc(s->count, sizeof *wanted);
        double *errors = base_calloc(s->count, sizeof *errors);

        assert_int_equal(recsys_prepare(f.fit, s->phase), BASE_OK);
        for (uint32_t r = 0; r < s->count; r++)
            errors[r] = plain_row(&f, side, r, wanted[r]);
        gibbs_rows(f.fit, side, 0, s->count);
        for (uint32_t r = 0; r < s->count; r++) {
            for (int i = 0; i < K; i++)
                assert_near((double)recsys_at(f.fit, s->factors, r)[i], wanted[r][i], 2e-3);
            assert_near((double)*recsys_at(f.fit, s->errors, r), errors[r], 5e-3);
        }
        base_free(wanted);
        base_free(errors);
    }
    fit_close(&f);
}

static void test_rows(void **state)
{
    (void)state;
    one_rows("bmf:k=16,side=none,noise=off");
    one_rows("bmf:k=16,side=none");
    one_rows("bmf:k=16,noise=off");
    one_rows("bmf:k=16");
    one_rows("bmf:k=16,likelihood=ordinal");
    one_rows("bmf:k=16,time=20");
    one_rows("bmf:k=16,time=20,likelihood=ordinal");
}

/* ---- prior ---- */

/* Over many draws, lambda⁻¹ and mu are around what the rows say. */
static void test_prior(void **state)
{
    enum { DRAWS = 400 };
    struct fitted f;
    const struct gibbs_side *s;
    double mean[K] = {0}, mu[K] = {0}, precision[K] = {0}, scatter[K * K] = {0};

    (void)state;
    fit_open(&f, "bmf:k=16,side=none");
    sweeps(&f, 3);
    s = &f.g->side[GIBBS_USERS];
    for (uint32_t r = 0; r < s->count; r++)
        for (int i = 0; i < K; i++)
            mean[i] += (double)recsys_at(f.fit, s->factors, r)[i] / s->count;
    for (int i = 0; i < K; i++) {
        for (int j = 0; j < K; j++)
            for (uint32_t r = 0; r < s->count; r++)
                scatter[i * K + j] += ((double)recsys_at(f.fit, s->factors, r)[i] - mean[i]) *
                                      ((double)recsys_at(f.fit, s->factors, r)[j] - mean[j]);
        scatter[i * K + i] += 1;
    }
    for (int d = 0; d < DRAWS; d++) {
        f.fit->sweep = 1000 + d;
        assert_int_equal(gibbs_prior(f.fit, GIBBS_USERS), BASE_OK);
        for (int i = 0; i < K; i++) {
            mu[i] += s->mu[i] / DRAWS;
            precision[i] += s->lambda[i * K + i] / DRAWS;
        }
    }
    /* The mean of a Wishart draw is its freedom times the inverse of the scatter. */
    scatter[s->fixed * K + s->fixed] = 1;
    assert_true(recsys_cholesky(scatter, K));
    for (int i = 0; i < K; i++) {
        double x[K] = {0};

        if (i == s->fixed)
            continue;
        x[i] = 1;
        recsys_forward(scatter, K, x);
        recsys_backward(scatter, K, x);
        assert_near(precision[i] / (x[i] * (K - 1 + s->count)), 1, 0.05);
        assert_near(mu[i], mean[i] * s->count / (s->count + 2.0), 0.03);
    }
    fit_close(&f);
}

/* ---- effects ---- */

/* Σ y_j / sqrt(n) over what a row has been rated together with. */
static void one_effects(const struct fitted *f, int side)
{
    const struct gibbs_side *s = &f->g->side[side];

    for (uint32_t r = 0; r < s->count; r++)
        for (int i = 0; i < K; i++) {
            const uint64_t n = s->start[r + 1] - s->start[r];
            double sum = 0;

            for (uint64_t e = s->start[r]; e < s->start[r + 1]; e++)
                sum += (double)recsys_at(f->fit, s->sites,
                                         (size_t)i / 8)[8 * s->column[e] + (uint32_t)(i % 8)];
            assert_near(
                (double)recsys_at(f->fit, s->effects, (size_t)i / 8)[8 * r + (uint32_t)(i % 8)],
                n > 0 ? sum / sqrt((double)n) : 0, 1e-4);
        }
}

static void test_effects(void **state)
{
    struct fitted f;

    (void)state;
    fit_open(&f, "bmf:k=16");
    sweeps(&f, 6);
    one_effects(&f, GIBBS_USERS);
    one_effects(&f, GIBBS_ITEMS);
    fit_close(&f);
}

/* ---- draws ---- */

static void test_draws(void **state)
{
    static const double shapes[] = {0.3, 1, 7.5, 400};

    (void)state;
    for (int i = 0; i < 4; i++) {
        double sum = 0, squares = 0;

        for (uint32_t r = 0; r < 20000; r++) {
            struct recsys_draws draws = recsys_draws_of(1, 99, 0, r);
            const double x = recsys_draw_gamma(&draws, shapes[i]);

            sum += x;
            squares += x * x;
        }
        sum /= 20000;
        assert_near(sum / shapes[i], 1, 0.03);
        assert_near((squares / 20000 - sum * sum) / shapes[i], 1, 0.05);
    }
    for (double p = 1e-9; p < 1; p = p < 0.4 ? p * 3 : p + 0.01)
        assert_near(recsys_phi(recsys_phi_inverse(p)), p, 1e-8);
}

/* Latents lie between the cut points of their levels, and cut points rise. */
static void test_latents(void **state)
{
    struct fitted f;
    const float *cuts;

    (void)state;
    fit_open(&f, "bmf:k=16,likelihood=ordinal");
    for (int b = 0; b < f.fit->buffer_count; b++)
        assert_string_not_equal(f.fit->buffers[b].name, "user_noise"); /* it is 1 */
    sweeps(&f, 8);
    assert_int_equal(gibbs_latents(f.fit), BASE_OK);
    cuts = recsys_at(f.fit, f.g->state, 0) + GIBBS_CUTS;
    for (uint32_t l = 1; l + 1 < rated.scale.levels; l++)
        assert_true(cuts[l] > cuts[l - 1]);
    for (uint64_t e = 0; e < rated.by_user.count; e++) {
        const uint32_t l = rated.by_user.code[e];

        assert_true(l == 0 || f.g->latent[e] >= cuts[l - 1] - 1e-4f);
        assert_true(l + 1 == rated.scale.levels || f.g->latent[e] <= cuts[l] + 1e-4f);
    }
    fit_close(&f);
}

/* ---- answers ---- */

static void test_guess(void **state)
{
    struct fitted f;

    (void)state;
    fit_open(&f, "bmf:k=16,sweeps=12,burn=4,keep=4");
    sweeps(&f, 12);
    assert_int_equal((int)recsys_at(f.fit, f.g->state, 0)[GIBBS_KEPT], 4);
    for (uint32_t u = 0; u < USERS; u += 10)
        for (uint32_t i = 0; i < ITEMS; i += 10) {
            const struct recsys_guess guess = recsys_predict(f.fit, u, i, 0);
            double sum = 0, squares = 0, noise;

            for (int s = 0; s < 4; s++) {
                double x = 0;

                for (int j = 0; j < K; j++)
                    x += (double)recsys_at(f.fit, f.g->kept[0], u)[s * K + j] *
                         (double)recsys_at(f.fit, f.g->kept[1], i)[s * K + j];
                sum += x / 4;
                squares += x * x / 4;
            }
            noise = (double)recsys_at(f.fit, f.g->kept[0], u)[4 * K];
            assert_near((double)guess.value, fmin(5, fmax(0.5, (double)f.fit->mean + sum)), 1e-5);
            assert_near((double)guess.deviation, sqrt(squares - sum * sum + noise), 1e-3);
        }
    fit_close(&f);
}

/* The deviation is honest: most test ratings are within two of them. */
static void test_deviation(void **state)
{
    struct fitted f;
    double within = 0;

    (void)state;
    fit_open(&f, "bmf:k=16,sweeps=40,burn=20");
    sweeps(&f, 40);
    for (uint32_t u = 0; u < USERS; u++)
        for (uint64_t k = rated.test.start[u]; k < rated.test.start[u + 1]; k++) {
            const struct recsys_guess guess = recsys_predict(f.fit, u, rated.test.column[k], 0);

            within += fabsf(guess.value - recsys_value(&rated.scale, &rated.test, k)) <
                      2 * guess.deviation;
        }
    within /= (double)rated.test.count;
    assert_true(within > 0.88 && within < 0.995);
    fit_close(&f);
}

/* ---- new users under times ---- */

/* All rate in the first days but one: the bin of these knows what its row says, a bin between has
 * learned nothing. */
static void test_doubts(void **state)
{
    enum { MANY = 60, FEW = 20, DAY = 86400, SWEEPS = 60 };
    const struct rated kept = rated;
    struct rated_one *all = base_calloc(MANY * FEW, sizeof *all);
    struct gibbs_doubts known, none;
    struct recsys_rating ratings[FEW];
    struct fitted f;

    (void)state;
    for (uint32_t n = 0; n < MANY * FEW; n++)
        all[n] = (struct rated_one){n / FEW, n % FEW, DAY * (10 + n % 25), 1 + (float)(n % 7) / 2};
    all[MANY * FEW - 1].time = 400 * DAY;
    rated_init(&rated, MANY, FEW, all, MANY * FEW, NULL);
    fit_open(&f, "bmf:k=16,sweeps=60,time=30");
    for (int i = 0; i < SWEEPS; i++)
        assert_int_equal(recsys_sweep(f.fit), BASE_OK);
    for (uint32_t j = 0; j < FEW; j++)
        ratings[j] = (struct recsys_rating){.item = j, .value = 3, .time = 12 * DAY};
    gibbs_doubts_find(f.fit, ratings, FEW, &known);
    for (uint32_t j = 0; j < FEW; j++)
        ratings[j].time = 200 * DAY;
    gibbs_doubts_find(f.fit, ratings, FEW, &none);
    assert_true(known.count == FEW && none.count == FEW);
    assert_true(known.at[0].bin == 0 && none.at[0].bin == 6);
    for (uint32_t j = 0; j < FEW; j++)
        assert_true(known.at[j].doubt < 0.8 && none.at[j].doubt > 0.9 && none.at[j].doubt <= 1);
    gibbs_doubts_fini(&known);
    gibbs_doubts_fini(&none);
    fit_close(&f);
    rated_fini(&rated);
    base_free(all);
    rated = kept;
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
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_prior),
        cmocka_unit_test(test_effects),   cmocka_unit_test(test_draws),
        cmocka_unit_test(test_latents),   cmocka_unit_test(test_guess),
        cmocka_unit_test(test_deviation), cmocka_unit_test(test_doubts),
    };

    return cmocka_run_group_tests(tests, make_ratings, free_ratings);
}
