/* SPDX-License-Identifier: MIT
 *
 * What is kept of the samples, and answers from them. A guess is the mean over kept samples of what
 * each would say. Rows of all samples lie side by side, (keep,k), so that without times and cut
 * points the mean is a single product of long rows. A user's row ends with its noise's variance.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gibbs.h"
#include "recsys/model_private.h"

/* ---- keeping ---- */

static void keep_rows(struct recsys_fit *fit, int side, size_t slot)
{
    const struct gibbs *g = gibbs_of(fit);
    const size_t k = (size_t)g->k, bytes = k * sizeof(float);
    const struct gibbs_side *s = &g->side[side];
    float *unknown = recsys_at(fit, g->unknown, (size_t)side) + slot * k;

    for (uint32_t r = 0; r < s->count; r++)
        memcpy(recsys_at(fit, g->kept[side], r) + slot * k, recsys_at(fit, s->factors, r), bytes);
    for (size_t f = 0; f < k; f++)
        unknown[f] = (float)s->mu[f];
    unknown[s->fixed] = side != GIBBS_TIMES;
}

/* The variance of noise as a mean over samples. */
static void keep_noise(struct recsys_fit *fit, float alpha, size_t slot)
{
    const struct gibbs *g = gibbs_of(fit);
    const size_t column = (size_t)g->keep * (size_t)g->k;
    const float old = (float)slot / (float)(slot + 1), new = 1 / (float)(slot + 1);
    float *unknown = recsys_at(fit, g->unknown, GIBBS_USERS) + column;

    *unknown = old * *unknown + new / alpha;
    for (uint32_t u = 0; u < fit->users; u++) {
        float *at = recsys_at(fit, g->kept[GIBBS_USERS], u) + column;
        const float noise = g->user_noise >= 0 ? *recsys_at(fit, g->user_noise, u) : 1;

        *at = old * *at + new / (alpha * noise);
    }
}

/* The state as the sample of a slot. While the chain settles, each replaces the one before. */
void gibbs_keep(struct recsys_fit *fit)
{
    const struct gibbs *g = gibbs_of(fit);
    const struct gibbs_side *users = &g->side[GIBBS_USERS];
    const size_t k = (size_t)g->k;
    float *state = recsys_at(fit, g->state, 0), *prior;
    size_t slot = (size_t)state[GIBBS_KEPT];

    if (fit->sweep < g->burn)
        slot = 0;
    else if ((fit->sweep - g->burn) % g->thin != 0 || slot >= (size_t)g->keep)
        return;
    for (int i = 0; i < g->sides; i++)
        keep_rows(fit, i, slot);
    for (uint32_t i = 0; i < (g->kept_sites >= 0 ? fit->items : 0); i++)
        for (size_t f = 0; f < k; f += 8)
            memcpy(recsys_at(fit, g->kept_sites, i) + slot * k + f,
                   recsys_at(fit, users->sites, f / 8) + 8 * (size_t)i, 8 * sizeof(float));
    prior = recsys_at(fit, g->kept_prior, slot);
    memcpy(prior, users->prior, k * k * sizeof *prior);
    memcpy(prior + k * k, users->prior_mean, k * sizeof *prior);
    prior[GIBBS_PRIOR_ALPHA(k)] = state[GIBBS_ALPHA];
    memcpy(prior + GIBBS_PRIOR_CUTS(k), state + GIBBS_CUTS, GIBBS_MAX_LEVELS * sizeof *prior);
    keep_noise(fit, state[GIBBS_ALPHA], slot);
    state[GIBBS_KEPT] = fit->sweep < g->burn ? 0 : (float)(slot + 1);
}

/* Samples that answers are made of; of a file, it may say anything. */
static int samples(const struct recsys_fit *fit)
{
    const struct gibbs *g = gibbs_of(fit);
    const float kept = recsys_at(fit, g->state, 0)[GIBBS_KEPT];

    return kept >= 1 && kept <= (float)g->keep ? (int)kept : 1;
}

/* ---- guesses ---- */

/* What one sample says, without the mean of all ratings. */
static double sample_says(const struct gibbs *g, const float *p, const float *q, const float *d)
{
    double x = (double)recsys_kernels()->dot(g->k, p, q);

    if (d == NULL)
        return x;
    for (int f = 0; f < g->k - 2; f++)
        x += (double)d[f] * ((double)p[f] + (double)q[f]);
    return x + (double)d[g->k - 1];
}

static const float *time_row(const struct recsys_fit *fit, uint32_t time)
{
    const struct gibbs *g = gibbs_of(fit);

    if (g->sides <= GIBBS_TIMES)
        return NULL;
    return time == 0 ? recsys_at(fit, g->unknown, GIBBS_TIMES)
                     : recsys_at(fit, g->kept[GIBBS_TIMES], gibbs_bin(g, time));
}

struct recsys_guess gibbs_guess(const struct recsys_fit *fit, const float *user, uint32_t item,
                                uint32_t time)
{
    const struct gibbs *g = gibbs_of(fit);
    const float *p = user != NULL ? user : recsys_at(fit, g->unknown, GIBBS_USERS);
    const float *q = item != RECSYS_UNKNOWN ? recsys_at(fit, g->kept[GIBBS_ITEMS], item)
                                            : recsys_at(fit, g->unknown, GIBBS_ITEMS);
    const float *d = time_row(fit, time);
    const int count = samples(fit);
    double sum = 0, squares = 0, noise = 0;

    assert(p != NULL);
    for (int s = 0; s < count; s++) {
        const size_t at = (size_t)s * (size_t)g->k;
        double x = sample_says(g, p + at, q + at, d != NULL ? d + at : NULL), own = 0;

        if (g->ordinal)
            x = gibbs_ordinal_mean(
                fit->scale, recsys_at(fit, g->kept_prior, (size_t)s) + GIBBS_PRIOR_CUTS(g->k), x,
                &own);
        sum += x;
        squares += x * x;
        noise += own;
    }
    sum /= count;
    noise = g->ordinal ? noise / count : (double)p[g->keep * g->k];
    return (struct recsys_guess){(float)(sum + (g->ordinal ? 0 : (double)fit->mean)),
                                 (float)sqrt(fmax(0, squares / count - sum * sum) + noise)};
}

/* ---- a new user ---- */

struct folding {
    const struct recsys_fit *fit;
    const struct recsys_rating *ratings;
    uint32_t count;
    const float *prior; /* of the sample */
    size_t at;          /* of the sample in a kept row */
};

/* What rating j says about the user: x (k) and the number y that <user,x> should be. */
static double equation(const struct folding *c, uint32_t j, double *x)
{
    const struct gibbs *g = gibbs_of(c->fit);
    const int k = g->k;
    const float *q = recsys_at(c->fit, g->kept[GIBBS_ITEMS], c->ratings[j].item) + c->at;
    const float *d = time_row(c->fit, c->ratings[j].time);
    double y = -(double)q[k - 1];

    if (!g->ordinal)
        y += (double)c->ratings[j].value - (double)c->fit->mean;
    for (int f = 0; f < k - 2; f++) {
        x[f] = (double)q[f] + (d != NULL ? (double)d[c->at + (size_t)f] : 0);
        y -= d != NULL ? (double)q[f] * (double)d[c->at + (size_t)f] : 0;
    }
    if (d != NULL)
        y -= (double)d[c->at + (size_t)k - 1];
    x[k - 2] = 1;
    x[k - 1] = 0;
    return y;
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

/* lambda (mu + effect) of the new user. */
static void prior_side(const struct folding *c, double *b)
{
    const struct gibbs *g = gibbs_of(c->fit);
    const int k = g->k;
    double effect[RECSYS_MAX_K] = {0};

    for (uint32_t j = 0; j < (g->kept_sites >= 0 ? c->count : 0); j++)
        for (int f = 0; f < k; f++)
            effect[f] +=
                (double)recsys_at(c->fit, g->kept_sites, c->ratings[j].item)[c->at + (size_t)f] /
                sqrt(c->count);
    for (int i = 0; i < k; i++) {
        b[i] = (double)c->prior[k * k + i];
        for (int f = 0; f < k; f++)
            b[i] += (double)c->prior[i * k + f] * effect[f];
    }
}

enum { ORDINAL_STEPS = 8 }; /* of expectation and maximisation */

/* The mean of the new user's row in one sample. */
static base_status fold_sample(const struct folding *c, double *a, float *row)
{
    const struct gibbs *g = gibbs_of(c->fit);
    const int k = g->k, steps = g->ordinal ? ORDINAL_STEPS : 1;
    const double alpha = (double)c->prior[GIBBS_PRIOR_ALPHA(k)];
    double prior[RECSYS_MAX_K], b[RECSYS_MAX_K] = {0}, x[RECSYS_MAX_K];

    for (int i = 0; i < k * k; i++)
        a[i] = (double)c->prior[i];
    for (uint32_t j = 0; j < c->count; j++) {
        equation(c, j, x);
        for (int i = 0; i < k; i++)
            for (int f = 0; f <= i; f++)
                a[i * k + f] += alpha * x[i] * x[f];
    }
    if (!recsys_cholesky(a, k))
        return base_fail(BASE_ERR_DIVERGED, "the model's prior is not positive definite");
    prior_side(c, prior);
    for (int step = 0; step < steps; step++) {
        double next[RECSYS_MAX_K];

        memcpy(next, prior, (size_t)k * sizeof *next);
        for (uint32_t j = 0; j < c->count; j++) {
            double y = equation(c, j, x), says = 0;

            for (int f = 0; f < k; f++)
                says += b[f] * x[f];
            if (g->ordinal) /* all but the user's own part is in -y */
                y += gibbs_ordinal_latent(c->fit->scale, c->prior + GIBBS_PRIOR_CUTS(k), says - y,
                                          level_of(c->fit->scale, c->ratings[j].value));
            for (int f = 0; f < k; f++)
                next[f] += alpha * y * x[f];
        }
        recsys_forward(a, k, next);
        recsys_backward(a, k, next);
        memcpy(b, next, (size_t)k * sizeof *b);
    }
    for (int f = 0; f < k; f++)
        row[f] = (float)b[f];
    row[k - 1] = 1;
    return BASE_OK;
}

base_status gibbs_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                       uint32_t count, float *row)
{
    base_status st = BASE_OK;
    const struct gibbs *g = gibbs_of(fit);
    double *a = base_calloc((size_t)g->k * (size_t)g->k, sizeof *a);

    memset(row, 0, recsys_row_floats(fit) * sizeof *row);
    for (int s = 0; s < samples(fit); s++) {
        const struct folding c = {fit, ratings, count, recsys_at(fit, g->kept_prior, (size_t)s),
                                  (size_t)s * (size_t)g->k};

        TRY(fold_sample(&c, a, row + c.at));
    }
    row[g->keep * g->k] = recsys_at(fit, g->unknown, GIBBS_USERS)[g->keep * g->k];
out:
    base_free(a);
    return st;
}
