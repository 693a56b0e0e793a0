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

/* Of a saved model, the number may be anything. */
int gibbs_samples(const struct recsys_fit *fit)
{
    const struct gibbs *g = gibbs_of(fit);
    const float kept = recsys_at(fit, g->state, 0)[GIBBS_KEPT];

    return kept >= 1 && kept <= (float)g->keep ? (int)kept : 1;
}

/* ---- guesses ---- */

double gibbs_says(const struct gibbs *g, const float *p, const float *q, const float *d)
{
    double x = (double)recsys_kernels()->dot(g->k, p, q);

    if (d == NULL)
        return x;
    for (int f = 0; f < g->k - 2; f++)
        x += (double)d[f] * ((double)p[f] + (double)q[f]);
    return x + (double)d[g->k - 1];
}

const float *gibbs_time_row(const struct recsys_fit *fit, uint32_t time)
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
    const float *d = gibbs_time_row(fit, time);
    const int count = gibbs_samples(fit);
    double sum = 0, squares = 0, noise = 0;

    assert(p != NULL);
    for (int s = 0; s < count; s++) {
        const size_t at = (size_t)s * (size_t)g->k;
        double x = gibbs_says(g, p + at, q + at, d != NULL ? d + at : NULL), own = 0;

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

/* As gibbs_guess does it, without what only a deviation needs. */
void gibbs_scores(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                  float *values)
{
    const struct gibbs *g = gibbs_of(fit);
    const float *p = user != NULL ? user : recsys_at(fit, g->unknown, GIBBS_USERS);
    const float *d = gibbs_time_row(fit, 0);
    const int count = gibbs_samples(fit);

    for (uint32_t i = from; i < to; i++) {
        const float *q = recsys_at(fit, g->kept[GIBBS_ITEMS], i);
        double sum = 0;

        if (g->ordinal) {
            values[i - from] = gibbs_guess(fit, user, i, 0).value;
            continue;
        }
        for (size_t at = 0; at < (size_t)count * (size_t)g->k; at += (size_t)g->k)
            sum += gibbs_says(g, p + at, q + at, d != NULL ? d + at : NULL);
        values[i - from] = (float)(sum / count + (double)fit->mean);
    }
}
