/* SPDX-License-Identifier: MIT
 *
 * A new user under times. Most users rate within a few days, so that the row of a time bin is to a
 * good part learned from the few users who were there. Of a new user's bins the model has learned
 * without that user: some have no ratings at all, and their rows are draws from the prior. A
 * training with the user would learn its row p and its bins' rows d together; <p,q> + <q,d> says
 * about an item what a row p + d would. So what a bin does not know yet, its *doubt*, becomes a
 * part of the user's prior: that has its mean nearer to what the bin would be and is wider.
 *
 * The doubt of a bin is the variance, over samples, of what its row says about the user's items, as
 * a share of what rows of all bins vary by: 1 for a bin without ratings, near 0 for one with many.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gibbs.h"
#include "recsys/model_private.h"

enum { MOST_BINS = 512, MOST_RATINGS = 32 }; /* that estimates are made of, evenly spread */

/* Column of a user's row that stands for column f of a bin's; their biases have other places. */
static int column_of(int k, int f)
{
    return f == k - 1 ? k - 2 : f;
}

/* x (k): a bin's row in a sample, less the mean of all bins', in the columns of users. */
static void load_bin(const struct recsys_fit *fit, uint32_t bin, size_t at, double *x)
{
    const struct gibbs *g = gibbs_of(fit);
    const float *d = recsys_at(fit, g->kept[GIBBS_TIMES], bin) + at;
    const float *mean = recsys_at(fit, g->unknown, GIBBS_TIMES) + at;

    memset(x, 0, (size_t)g->k * sizeof *x);
    for (int f = 0; f < g->k; f++)
        if (f != g->k - 2)
            x[column_of(g->k, f)] = (double)d[f] - (double)mean[f];
}

/* sigma (k,k): covariance of the bins' rows in a sample; a unit matrix counts as one of k rows, as
 * in their prior. */
static void covariance(const struct recsys_fit *fit, size_t at, double *sigma)
{
    const struct gibbs *g = gibbs_of(fit);
    const int k = g->k;
    const uint32_t bins = fit->buffers[g->kept[GIBBS_TIMES]].rows;
    const uint32_t step = (bins + MOST_BINS - 1) / MOST_BINS;
    double seen = k;

    memset(sigma, 0, (size_t)k * (size_t)k * sizeof *sigma);
    for (int f = 0; f < k - 1; f++)
        sigma[f * k + f] = 1;
    for (uint32_t bin = 0; bin < bins; bin += step, seen++) {
        double x[RECSYS_MAX_K];

        load_bin(fit, bin, at, x);
        for (int i = 0; i < k - 1; i++)
            for (int f = 0; f < k - 1; f++)
                sigma[i * k + f] += x[i] * x[f];
    }
    for (int i = 0; i < k * k; i++)
        sigma[i] /= seen;
}

/* ---- doubts ---- */

/* Over samples, of one rating: what its bin's row says about its item. */
struct said {
    double sum, squares, prior;
};

static void hear(const struct recsys_fit *fit, const struct recsys_rating *rating, size_t at,
                 const double *sigma, struct said *said)
{
    const struct gibbs *g = gibbs_of(fit);
    const int k = g->k;
    const float *q = recsys_at(fit, g->kept[GIBBS_ITEMS], rating->item) + at;
    double x[RECSYS_MAX_K], d[RECSYS_MAX_K], says, prior = 0;

    load_bin(fit, gibbs_bin(g, rating->time), at, d);
    for (int f = 0; f < k - 2; f++)
        x[f] = (double)q[f];
    x[k - 2] = 1;
    says = recsys_product(x, d, k - 1);
    for (int i = 0; i < k - 1; i++)
        prior += x[i] * recsys_product(sigma + i * k, x, k - 1);
    said->sum += says;
    said->squares += says * says;
    said->prior += prior;
}

/* Some of the ratings tell about their bins. */
void gibbs_doubts_find(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                       uint32_t count, struct gibbs_doubts *doubts_p)
{
    const struct gibbs *g = gibbs_of(fit);
    const uint32_t step = count / MOST_RATINGS + 1;
    const int samples = gibbs_samples(fit);
    double *sigma = base_calloc((size_t)g->k * (size_t)g->k, sizeof *sigma);
    struct said *said = base_calloc(count / step + 1, sizeof *said);

    *doubts_p = (struct gibbs_doubts){.at = base_calloc(count / step + 1, sizeof *doubts_p->at)};
    for (int s = 0; s < samples; s++) {
        const size_t at = (size_t)s * (size_t)g->k;

        covariance(fit, at, sigma);
        for (uint32_t j = 0; j < count; j += step)
            if (ratings[j].time != 0)
                hear(fit, &ratings[j], at, sigma, &said[j / step]);
    }
    for (uint32_t j = 0; j < count; j += step) {
        const struct said *of = &said[j / step];
        const double mean = of->sum / samples, variance = of->squares / samples - mean * mean;

        if (ratings[j].time != 0 && of->prior > 0)
            doubts_p->at[doubts_p->count++] = (struct gibbs_doubt){
                gibbs_bin(g, ratings[j].time), fmin(1, fmax(0, variance * samples / of->prior))};
    }
    base_free(said);
    base_free(sigma);
}

void gibbs_doubts_fini(struct gibbs_doubts *doubts)
{
    base_free(doubts->at);
    *doubts = (struct gibbs_doubts){0};
}

/* The share of a bin's variance that is open in a mean over the user's ratings: bins vary
 * independently. */
static double open_share(const struct gibbs_doubts *doubts)
{
    double sum = 0;

    for (uint32_t i = 0; i < doubts->count; i++)
        for (uint32_t j = 0; j < doubts->count; j++)
            if (doubts->at[i].bin == doubts->at[j].bin)
                sum += doubts->at[i].doubt;
    return doubts->count > 0 ? sum / doubts->count / doubts->count : 0;
}

/* ---- the prior ---- */

static bool invert(double *a, int k, double *scratch)
{
    if (!recsys_cholesky(a, k))
        return false;
    memset(scratch, 0, (size_t)k * (size_t)k * sizeof *scratch);
    for (int i = 0; i < k; i++) {
        scratch[i * k + i] = 1;
        recsys_solve(a, k, scratch + i * k);
    }
    memcpy(a, scratch, (size_t)k * (size_t)k * sizeof *a);
    return true;
}

base_status gibbs_doubts_widen(const struct recsys_fit *fit, const struct gibbs_doubts *doubts,
                               size_t at, double *lambda, double *lambda_mu)
{
    base_status st = BASE_OK;
    const int k = gibbs_of(fit)->k;
    const size_t size = (size_t)k * (size_t)k;
    double *sigma = base_calloc(2 * size, sizeof *sigma), *scratch = sigma + size;
    double mu[RECSYS_MAX_K] = {0}, x[RECSYS_MAX_K];
    const double share = open_share(doubts);

    if (!invert(lambda, k, scratch))
        TRY(base_fail(BASE_ERR_DIVERGED, "the model's prior is not positive definite"));
    for (int i = 0; i < k; i++)
        mu[i] = recsys_product(lambda + i * k, lambda_mu, k);
    for (uint32_t j = 0; j < doubts->count; j++) {
        load_bin(fit, doubts->at[j].bin, at, x);
        for (int f = 0; f < k - 1; f++)
            mu[f] -= doubts->at[j].doubt * x[f] / doubts->count;
    }
    covariance(fit, at, sigma);
    for (size_t i = 0; i < size; i++)
        lambda[i] += share * sigma[i];
    if (!invert(lambda, k, scratch))
        TRY(base_fail(BASE_ERR_DIVERGED, "the model's rows of time are not numbers"));
    for (int i = 0; i < k; i++)
        lambda_mu[i] = recsys_product(lambda + i * k, mu, k);
out:
    base_free(sigma);
    return st;
}
