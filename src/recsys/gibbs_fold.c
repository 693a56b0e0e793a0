/* SPDX-License-Identifier: MIT
 *
 * A user who came after the training: in each kept sample, the mean of the row that its ratings
 * would have there; and what each of the ratings adds to a guess.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gibbs.h"
#include "recsys/model_private.h"

struct folding {
    const struct recsys_fit *fit;
    const struct recsys_rating *ratings;
    uint32_t count;
    const float *prior;         /* of the sample */
    double *lambda, *lambda_mu; /* (k,k), (k): the same for this user's row */
    struct gibbs_doubts doubts;
    size_t at; /* of the sample in a kept row */
    double *a; /* (k,k) the factor of the row's precision */
    double *y; /* (count) what each rating leaves for <row,x> to explain */
};

/* The x (k) whose product with a user's row is what the row says about an item, and *rest_p: what
 * is said whatever the row. */
static void equation(const struct folding *c, uint32_t item, uint32_t time, double *x,
                     double *rest_p)
{
    const struct gibbs *g = gibbs_of(c->fit);
    const int k = g->k;
    const float *q = recsys_at(c->fit, g->kept[GIBBS_ITEMS], item) + c->at;
    const float *d = gibbs_time_row(c->fit, time);

    *rest_p = (double)q[k - 1] + (d != NULL ? (double)d[c->at + (size_t)k - 1] : 0);
    for (int f = 0; f < k - 2; f++) {
        const double of_time = d != NULL ? (double)d[c->at + (size_t)f] : 0;

        x[f] = (double)q[f] + of_time;
        *rest_p += (double)q[f] * of_time;
    }
    x[k - 2] = 1;
    x[k - 1] = 0;
}

static double equation_of(const struct folding *c, uint32_t j, double *x)
{
    double rest;

    equation(c, c->ratings[j].item, c->ratings[j].time, x, &rest);
    return rest;
}

/* The level nearest to a value. */
static uint32_t level_of(const struct recsys_scale *scale, float value)
{
    uint32_t best = 0;

    for (uint32_t l = 1; l < scale->levels; l++)
        if (fabsf(scale->level[l] - value) < fabsf(scale->level[best] - value))
            best = l;
    return best;
}

/* effect (k) += what rating j adds to the mean of the new user's prior. */
static void add_effect(const struct folding *c, uint32_t j, double *effect)
{
    const struct gibbs *g = gibbs_of(c->fit);
    const float *site =
        g->kept_sites >= 0 ? recsys_at(c->fit, g->kept_sites, c->ratings[j].item) + c->at : NULL;

    for (int f = 0; f < (site != NULL ? g->k : 0); f++)
        effect[f] += (double)site[f] / sqrt(c->count);
}

/* to (k) += lambda v. */
static void add_lambda(const struct folding *c, const double *v, double *to)
{
    const int k = gibbs_of(c->fit)->k;

    for (int i = 0; i < k; i++)
        to[i] += recsys_product(c->lambda + i * k, v, k);
}

/* Sets c->y for a user of this row. */
static void residuals(const struct folding *c, const double *row)
{
    const struct gibbs *g = gibbs_of(c->fit);
    const float *cuts = c->prior + GIBBS_PRIOR_CUTS(g->k);

    for (uint32_t j = 0; j < c->count; j++) {
        double x[RECSYS_MAX_K];
        const double rest = equation_of(c, j, x);
        const float value = c->ratings[j].value;

        if (!g->ordinal)
            c->y[j] = (double)value - (double)c->fit->mean - rest;
        else
            c->y[j] = gibbs_ordinal_latent(c->fit->scale, cuts, recsys_product(row, x, g->k) + rest,
                                           level_of(c->fit->scale, value)) -
                      rest;
    }
}

static base_status precision(const struct folding *c, double alpha)
{
    const int k = gibbs_of(c->fit)->k;

    memcpy(c->a, c->lambda, (size_t)k * (size_t)k * sizeof *c->a);
    for (uint32_t j = 0; j < c->count; j++) {
        double x[RECSYS_MAX_K];

        equation_of(c, j, x);
        for (int i = 0; i < k; i++)
            for (int f = 0; f <= i; f++)
                c->a[i * k + f] += alpha * x[i] * x[f];
    }
    return recsys_cholesky(c->a, k)
               ? BASE_OK
               : base_fail(BASE_ERR_DIVERGED, "the model's prior is not positive definite");
}

enum { ORDINAL_STEPS = 8 }; /* of expectation and maximisation */

/* The mean of the new user's row in one sample: b (k). */
static base_status fold_sample(const struct folding *c, double *b)
{
    base_status st = BASE_OK;
    const struct gibbs *g = gibbs_of(c->fit);
    const int k = g->k, steps = g->ordinal ? ORDINAL_STEPS : 1;
    const double alpha = (double)c->prior[GIBBS_PRIOR_ALPHA(k)];
    double prior[RECSYS_MAX_K] = {0}, effect[RECSYS_MAX_K] = {0};

    TRY(precision(c, alpha));
    memcpy(prior, c->lambda_mu, (size_t)k * sizeof *prior);
    for (uint32_t j = 0; j < c->count; j++)
        add_effect(c, j, effect);
    add_lambda(c, effect, prior);
    memset(b, 0, (size_t)k * sizeof *b);
    for (int step = 0; step < steps; step++) {
        residuals(c, b);
        memcpy(b, prior, (size_t)k * sizeof *b);
        for (uint32_t j = 0; j < c->count; j++) {
            double x[RECSYS_MAX_K];

            equation_of(c, j, x);
            for (int f = 0; f < k; f++)
                b[f] += alpha * c->y[j] * x[f];
        }
        recsys_solve(c->a, k, b);
    }
    b[k - 1] = 1;
out:
    return st;
}

static void folding_begin(struct folding *c, const struct recsys_fit *fit,
                          const struct recsys_rating *ratings, uint32_t count)
{
    const struct gibbs *g = gibbs_of(fit);
    const size_t k = (size_t)g->k;

    *c = (struct folding){.fit = fit,
                          .ratings = ratings,
                          .count = count,
                          .lambda = base_calloc(k * k, sizeof(double)),
                          .lambda_mu = base_calloc(k, sizeof(double)),
                          .a = base_calloc(k * k, sizeof(double)),
                          .y = base_calloc(count + 1u, sizeof(double))};
    if (g->sides > GIBBS_TIMES)
        gibbs_doubts_find(fit, ratings, count, &c->doubts);
}

static base_status choose_sample(struct folding *c, int sample)
{
    const struct gibbs *g = gibbs_of(c->fit);
    const int k = g->k;

    c->prior = recsys_at(c->fit, g->kept_prior, (size_t)sample);
    c->at = (size_t)sample * (size_t)k;
    for (int i = 0; i < k * k; i++)
        c->lambda[i] = (double)c->prior[i];
    for (int i = 0; i < k; i++)
        c->lambda_mu[i] = (double)c->prior[k * k + i];
    return c->doubts.count > 0
               ? gibbs_doubts_widen(c->fit, &c->doubts, c->at, c->lambda, c->lambda_mu)
               : BASE_OK;
}

static void folding_end(struct folding *c)
{
    gibbs_doubts_fini(&c->doubts);
    base_free(c->lambda);
    base_free(c->lambda_mu);
    base_free(c->a);
    base_free(c->y);
}

base_status gibbs_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                       uint32_t count, float *row)
{
    base_status st = BASE_OK;
    const struct gibbs *g = gibbs_of(fit);
    struct folding c;
    double b[RECSYS_MAX_K];

    folding_begin(&c, fit, ratings, count);
    memset(row, 0, recsys_row_floats(fit) * sizeof *row);
    for (int s = 0; s < gibbs_samples(fit); s++) {
        TRY(choose_sample(&c, s));
        TRY(fold_sample(&c, b));
        for (int f = 0; f < g->k; f++)
            row[c.at + (size_t)f] = (float)b[f];
    }
    row[g->keep * g->k] = recsys_at(fit, g->unknown, GIBBS_USERS)[g->keep * g->k];
out:
    folding_end(&c);
    return st;
}

/* ---- explanations ---- */

/* The sample's guess is rest + <x, A⁻¹ (prior + Σ_j (effect_j + alpha y_j x_j))>: adds each
 * rating's term, divided by `samples`, and to *rest_p the others. With cut points the terms share
 * what the ratings together change in the expected rating. */
static base_status explain_sample(const struct folding *c, uint32_t item, int samples, float *parts,
                                  double *rest_p)
{
    base_status st = BASE_OK;
    const struct gibbs *g = gibbs_of(c->fit);
    const int k = g->k;
    const float *cuts = c->prior + GIBBS_PRIOR_CUTS(k);
    const double alpha = (double)c->prior[GIBBS_PRIOR_ALPHA(k)];
    double row[RECSYS_MAX_K], z[RECSYS_MAX_K], lambda_z[RECSYS_MAX_K] = {0};
    double says, without, rest, scale = 1;
    double *term = base_calloc(c->count + 1u, sizeof *term);

    TRY(fold_sample(c, row));
    equation(c, item, 0, z, &rest);
    says = rest + recsys_product(row, z, k);
    recsys_solve(c->a, k, z);
    add_lambda(c, z, lambda_z); /* lambda is symmetric */
    without = says;
    for (uint32_t j = 0; j < c->count; j++) {
        double effect[RECSYS_MAX_K] = {0}, x[RECSYS_MAX_K];

        equation_of(c, j, x);
        add_effect(c, j, effect);
        term[j] = alpha * c->y[j] * recsys_product(x, z, k) + recsys_product(effect, lambda_z, k);
        without -= term[j];
    }
    if (g->ordinal) {
        const double apart = says - without;
        double variance;

        without = gibbs_ordinal_mean(c->fit->scale, cuts, without, &variance);
        if (apart != 0)
            scale = (gibbs_ordinal_mean(c->fit->scale, cuts, says, &variance) - without) / apart;
    }
    for (uint32_t j = 0; j < c->count; j++)
        parts[j] += (float)(scale * term[j] / samples);
    *rest_p += without / samples;
out:
    base_free(term);
    return st;
}

base_status gibbs_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                          uint32_t count, uint32_t item, float *parts, float *rest_p)
{
    base_status st = BASE_OK;
    const int samples = gibbs_samples(fit);
    struct folding c;
    double rest = gibbs_of(fit)->ordinal ? 0 : (double)fit->mean;

    folding_begin(&c, fit, ratings, count);
    memset(parts, 0, count * sizeof *parts);
    for (int s = 0; s < samples; s++) {
        TRY(choose_sample(&c, s));
        TRY(explain_sample(&c, item, samples, parts, &rest));
    }
    *rest_p = (float)rest;
out:
    folding_end(&c);
    return st;
}
