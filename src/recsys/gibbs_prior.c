/* SPDX-License-Identifier: MIT
 *
 * The prior of a side's rows: mean and precision (Normal-Wishart, by all rows), and the effects of
 * what a row was rated together with. Sums over rows are made of fixed blocks, added in their
 * order.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gibbs.h"
#include "recsys/model_private.h"

enum { BLOCK = 1024 };               /* rows */
static const double MEAN_WEIGHT = 2; /* rows that the prior of mu counts as */

/* Σ x xᵀ and Σ x over blocks of rows, less their effects; then over blocks of sites, which have the
 * same precision up to their spread. */
struct moments {
    const struct recsys_fit *fit;
    const struct gibbs_side *side;
    uint32_t row_blocks, sites;
    float scale;  /* of sites */
    double *sums; /* for each block (k,k), (k) */
};

static void load_row(const struct moments *m, uint32_t r, float *x)
{
    const struct gibbs_side *s = m->side;
    const int k = gibbs_of(m->fit)->k;

    memcpy(x, recsys_at(m->fit, s->factors, r), (size_t)k * sizeof *x);
    for (int f = 0; f < (s->effects >= 0 ? k : 0); f++)
        x[f] -= recsys_at(m->fit, s->effects, (size_t)f / 8)[8 * (size_t)r + (size_t)f % 8];
    x[s->fixed] = 0;
}

static void load_site(const struct moments *m, uint32_t r, float *x)
{
    const struct gibbs_side *s = m->side;
    const int k = gibbs_of(m->fit)->k;

    for (int f = 0; f < k; f++)
        x[f] = m->scale * recsys_at(m->fit, s->sites, (size_t)f / 8)[8 * (size_t)r + (size_t)f % 8];
    x[s->fixed] = 0;
}

static void moments_block(const void *context, int unit, int thread)
{
    const struct moments *m = context;
    const struct gibbs *g = gibbs_of(m->fit);
    const int k = g->k, most = recsys_panel(k);
    const bool sites = (uint32_t)unit >= m->row_blocks;
    const uint32_t from = ((uint32_t)unit - (sites ? m->row_blocks : 0)) * BLOCK;
    const uint32_t count = sites ? m->sites : m->side->count;
    const uint32_t to = count - from < BLOCK ? count : from + BLOCK;
    float *triangle = g->scratch[thread].triangles, *panel = g->scratch[thread].panel;
    double *sums = m->sums + (size_t)unit * (size_t)k * ((size_t)k + 1);

    memset(triangle, 0, recsys_triangle_floats(k) * sizeof *triangle);
    for (uint32_t r = from; r < to;) {
        int n = 0;

        for (; n < most && r < to; n++, r++) {
            float *x = panel + n * k;

            if (sites)
                load_site(m, r, x);
            else
                load_row(m, r, x);
            for (int f = 0; f < (sites ? 0 : k); f++)
                sums[k * k + f] += (double)x[f];
        }
        recsys_kernels()->syrk(k, panel, n, triangle, NULL);
    }
    for (int i = 0; i < k; i++)
        for (int j = i; j < k; j++)
            sums[i * k + j] = sums[j * k + i] = (double)triangle[recsys_triangle_at(k, i, j)];
}

/* All moments of rows and sites, either of which may be left out, into the first block's place. */
static base_status sum_moments(struct moments *m)
{
    base_status st = BASE_OK;
    const int k = gibbs_of(m->fit)->k;
    const size_t size = (size_t)k * ((size_t)k + 1);
    const uint32_t blocks = m->row_blocks + (m->sites + BLOCK - 1) / BLOCK;

    TRY(base_tensor(blocks * size, sizeof *m->sums, "moments of rows", &m->sums));
    base_team_run(m->fit->team, (int)blocks, moments_block, m);
    for (uint32_t b = 1; b < blocks; b++)
        for (size_t i = 0; i < size; i++)
            m->sums[i] += m->sums[b * size + i];
out:
    return st;
}

static uint32_t sites_of(const struct gibbs *g, const struct gibbs_side *s)
{
    return s->sites >= 0 ? g->side[s->first].count : 0;
}

/* The free columns of a side: all but the fixed one, d = k-1 of them. */
static int free_column(const struct gibbs_side *s, int i)
{
    return i < s->fixed ? i : i + 1;
}

/* lambda (d,d) ~ Wishart(scale⁻¹, freedom) by Bartlett's decomposition; scale is overwritten. */
static bool draw_wishart(struct recsys_draws *draws, double *scale, int d, double freedom,
                         double *b, double *lambda)
{
    if (!recsys_cholesky(scale, d))
        return false;
    memset(b, 0, (size_t)d * (size_t)d * sizeof *b); /* by columns: b[c] = L⁻ᵀ a[c] */
    for (int i = 0; i < d; i++) {
        b[i * d + i] = sqrt(2 * recsys_draw_gamma(draws, (freedom - i) / 2));
        for (int j = 0; j < i; j++)
            b[j * d + i] = recsys_draw_normal(draws);
    }
    for (int c = 0; c < d; c++)
        recsys_backward(scale, d, b + c * d);
    memset(lambda, 0, (size_t)d * (size_t)d * sizeof *lambda);
    for (int c = 0; c < d; c++)
        for (int i = 0; i < d; i++)
            for (int j = 0; j < d; j++)
                lambda[i * d + j] += b[c * d + i] * b[c * d + j];
    return true;
}

/* What the half-sweep reads, from mu and lambda of the free columns. */
static void set_prior(const struct gibbs_side *s, int k, const double *mu, const double *lambda)
{
    const int d = k - 1;

    memset(s->lambda, 0, (size_t)k * (size_t)k * sizeof *s->lambda);
    memset(s->mu, 0, (size_t)k * sizeof *s->mu);
    s->lambda[s->fixed * k + s->fixed] = 1;
    for (int i = 0; i < d; i++) {
        s->mu[free_column(s, i)] = mu[i];
        for (int j = 0; j < d; j++)
            s->lambda[free_column(s, i) * k + free_column(s, j)] = lambda[i * d + j];
    }
    for (int i = 0; i < k; i++) {
        double mean = 0;

        for (int j = 0; j < k; j++) {
            mean += s->lambda[i * k + j] * s->mu[j];
            s->prior[i * k + j] = (float)s->lambda[i * k + j];
        }
        s->prior_mean[i] = (float)mean;
    }
}

base_status gibbs_prior(struct recsys_fit *fit, int side)
{
    base_status st = BASE_OK;
    const struct gibbs *g = gibbs_of(fit);
    const struct gibbs_side *s = &g->side[side];
    const int k = g->k, d = k - 1;
    const double n = s->count;
    double *w = NULL, *b = NULL, *lambda = NULL, mean[RECSYS_MAX_K], mu[RECSYS_MAX_K];
    struct moments m = {.fit = fit,
                        .side = s,
                        .row_blocks = (s->count + BLOCK - 1) / BLOCK,
                        .sites = sites_of(g, s),
                        .scale = sqrtf(recsys_at(fit, g->state, 0)[GIBBS_SPREAD + side % 2])};
    struct recsys_draws draws =
        recsys_draws_of(fit->seed, GIBBS_DRAW_PRIOR + (uint32_t)side, (uint32_t)fit->sweep, 0);

    TRY(sum_moments(&m));
    w = base_calloc((size_t)d * (size_t)d, sizeof *w);
    b = base_calloc((size_t)d * (size_t)d, sizeof *b);
    lambda = base_calloc((size_t)d * (size_t)d, sizeof *lambda);
    for (int i = 0; i < d; i++)
        mean[i] = m.sums[k * k + free_column(s, i)] / n;
    for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++)
            w[i * d + j] = (i == j) + m.sums[free_column(s, i) * k + free_column(s, j)] -
                           n * n / (MEAN_WEIGHT + n) * mean[i] * mean[j];
    if (!draw_wishart(&draws, w, d, d + n + (double)m.sites, b, lambda))
        TRY(base_fail(BASE_ERR_DIVERGED, "the rows of the model are no longer numbers"));
    memcpy(w, lambda, (size_t)d * (size_t)d * sizeof *w);
    for (int i = 0; i < d; i++)
        mu[i] = recsys_draw_normal(&draws);
    if (!recsys_cholesky(w, d))
        TRY(base_fail(BASE_ERR_DIVERGED, "the precision of the model's rows has become singular"));
    recsys_backward(w, d, mu);
    for (int i = 0; i < d; i++)
        mu[i] = n / (MEAN_WEIGHT + n) * mean[i] + mu[i] / sqrt(MEAN_WEIGHT + n);
    set_prior(s, k, mu, lambda);
out:
    base_free(m.sums);
    base_free(w);
    base_free(b);
    base_free(lambda);
    return st;
}

/* ---- effects ---- */

struct site_noise {
    const struct recsys_fit *fit;
    const struct gibbs_side *side;
    int which;
};

/* Normals of covariance lambda⁻¹ for each site, eight at a time. */
static void noise_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct site_noise *c = context;
    const struct gibbs *g = gibbs_of(c->fit);
    const struct gibbs_scratch *scratch = &g->scratch[thread];
    const size_t sites = g->side[c->side->first].count;
    const int k = g->k;
    float z[RECSYS_MAX_K + 16];

    for (uint32_t j = from; j < to; j += RECSYS_LANES) {
        const uint32_t lanes = to - j < RECSYS_LANES ? to - j : RECSYS_LANES;

        memset(scratch->x, 0, (size_t)(RECSYS_LANES * k) * sizeof *scratch->x);
        for (uint32_t l = 0; l < lanes; l++) {
            recsys_row_normals(c->fit->seed, GIBBS_DRAW_EFFECT + (uint32_t)c->which,
                               (uint32_t)c->fit->sweep, j + l, k, z);
            for (int f = 0; f < k; f++)
                scratch->noise[8 * (uint32_t)f + l] = z[f];
        }
        recsys_kernels()->lanes_solve(k, g->site_lower, scratch->x, scratch->noise);
        for (int f = 0; f < k; f++)
            for (uint32_t l = 0; l < lanes; l++)
                c->side->noise[((size_t)f / 8 * sites + j + l) * 8 + (size_t)f % 8] =
                    f == c->side->fixed ? 0 : scratch->x[8 * (uint32_t)f + l];
    }
}

void gibbs_effects_prepare(struct recsys_fit *fit, int side)
{
    static const float none[RECSYS_LANES] = {0};
    const struct gibbs *g = gibbs_of(fit);
    const struct site_noise c = {fit, &g->side[side], side};
    float *zeros = g->scratch[0].triangles;

    memset(zeros, 0, RECSYS_LANES * recsys_triangle_floats(g->k) * sizeof *zeros);
    recsys_kernels()->lanes_gather(g->k, zeros, c.side->prior, none, g->site_lower);
    recsys_kernels()->lanes_cholesky(g->k, g->site_lower);
    recsys_each_range(fit->team, NULL, 0, g->side[c.side->first].count, noise_range, &c);
}

struct slices {
    const struct recsys_fit *fit;
    const struct gibbs_side *side, *other;
    uint32_t from;
    float spread;
};

/* rest = factors - mu - effects of one slice, and back. */
static void take_rest(const struct slices *c, size_t slice, float *rest, bool back)
{
    const struct gibbs_side *s = c->side;
    float *effects = recsys_at(c->fit, s->effects, slice);

    for (uint32_t r = 0; r < s->count; r++) {
        const float *row = recsys_at(c->fit, s->factors, r) + 8 * slice;

        for (size_t f = 0; f < 8; f++) {
            const int column = (int)(8 * slice + f);
            float *from = back ? rest : effects, *to = back ? effects : rest;

            to[8 * (size_t)r + f] =
                column == s->fixed ? 0 : row[f] - (float)s->mu[column] - from[8 * (size_t)r + f];
        }
    }
}

static void slice_unit(const void *context, int unit, int thread)
{
    const struct slices *c = context;
    const size_t slice = c->from + (size_t)unit;
    float *rest = c->side->rest + slice * c->side->count * 8;
    float *sites = recsys_at(c->fit, c->side->sites, slice);
    const float *noise = c->side->noise + slice * c->other->count * 8;

    (void)thread;
    take_rest(c, slice, rest, false);
    for (uint32_t j = 0; j < c->other->count; j++)
        recsys_kernels()->site(c->other->column + c->other->start[j],
                               c->other->start[j + 1] - c->other->start[j], c->side->share,
                               c->spread, noise + 8 * (size_t)j, rest, sites + 8 * (size_t)j);
    take_rest(c, slice, rest, true);
}

void gibbs_effects(struct recsys_fit *fit, int side, uint32_t from, uint32_t to)
{
    const struct gibbs *g = gibbs_of(fit);
    const struct gibbs_side *s = &g->side[side];
    const struct slices c = {fit, s, &g->side[s->first], from,
                             recsys_at(fit, g->state, 0)[GIBBS_SPREAD + side]};

    base_team_run(fit->team, (int)(to - from), slice_unit, &c);
}

/* spread ~ Gamma, by Σ yᵀ lambda y over all sites. */
base_status gibbs_spread(struct recsys_fit *fit, int side)
{
    base_status st = BASE_OK;
    const struct gibbs *g = gibbs_of(fit);
    const struct gibbs_side *s = &g->side[side];
    struct moments m = {.fit = fit, .side = s, .sites = sites_of(g, s), .scale = 1};
    double sum = 0;
    struct recsys_draws draws =
        recsys_draws_of(fit->seed, GIBBS_DRAW_SPREAD + (uint32_t)side, (uint32_t)fit->sweep, 0);

    TRY(sum_moments(&m));
    for (int i = 0; i < g->k * g->k; i++)
        sum += s->lambda[i] * m.sums[i];
    recsys_at(fit, g->state, 0)[GIBBS_SPREAD + side] =
        (float)(recsys_draw_gamma(&draws, 1 + 0.5 * (double)m.sites * (g->k - 1)) /
                (1 + 0.5 * sum));
out:
    base_free(m.sums);
    return st;
}
