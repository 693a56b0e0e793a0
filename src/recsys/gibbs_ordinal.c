/* SPDX-License-Identifier: MIT
 *
 * Ordinal likelihood (probit): a rating is the level between whose cut points a latent of unit
 * noise falls. A sweep draws the cut points, by a Newton step and Gaussian noise around the
 * posterior's mode, and then every rating's latent. The latents stand in for ratings in all that
 * follows.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gibbs.h"
#include "recsys/model_private.h"

enum { BLOCKS = 64, MOST = GIBBS_MAX_LEVELS, NEWTON_STEPS = 2 };
static const double FAR = 1e9, LONGEST = 0.3, NEAREST = 0.01;

/* The cut point below level l. */
static double cut(const float *cuts, uint32_t levels, uint32_t l)
{
    return l == 0 ? -FAR : l >= levels ? FAR : (double)cuts[l - 1];
}

static float guess_latent(const struct recsys_fit *fit, uint32_t u, uint64_t e)
{
    const struct gibbs *g = gibbs_of(fit);
    const float *p = recsys_at(fit, g->side[GIBBS_USERS].factors, u);
    const float *q = recsys_at(fit, g->side[GIBBS_ITEMS].factors, fit->by_user->column[e]);
    float x = recsys_kernels()->dot(g->k, p, q);

    if (g->sides > GIBBS_TIMES) {
        const float *d = recsys_at(fit, g->side[GIBBS_TIMES].factors, g->bins[0][e]);

        x += d[g->k - 1];
        for (int f = 0; f < g->k - 2; f++)
            x += d[f] * (p[f] + q[f]);
    }
    return x;
}

/* Where levels begin, by how often they are used. */
base_status gibbs_cuts_start(struct recsys_fit *fit)
{
    const struct gibbs *g = gibbs_of(fit);
    float *cuts = recsys_at(fit, g->state, 0) + GIBBS_CUTS;
    const uint32_t levels = fit->scale->levels;
    double seen[MOST] = {0}, below = 0;

    for (uint64_t e = 0; e < fit->by_user->count; e++)
        seen[fit->by_user->code[e]]++;
    for (uint32_t l = 0; l + 1 < levels; l++) {
        const double share = (below += seen[l]) / (double)fit->by_user->count;

        cuts[l] = (float)(1.25 * recsys_phi_inverse(fmin(fmax(share, 1e-6), 1 - 1e-6)));
        if (l > 0 && cuts[l] < cuts[l - 1] + (float)NEAREST)
            cuts[l] = cuts[l - 1] + (float)NEAREST;
    }
    return BASE_OK;
}

/* Gradient and (tridiagonal) negative Hessian of the log likelihood in the cut points. */
struct slope {
    double gradient[MOST], diagonal[MOST], beside[MOST];
};

struct slopes {
    const struct recsys_fit *fit;
    const float *cuts;
    struct slope *blocks;
};

static void add_slope(struct slope *s, uint32_t level, uint32_t levels, double low, double high)
{
    const double p = fmax(recsys_phi(high) - recsys_phi(low), 1e-12);
    const double density = 0.3989422804014327 / p;
    const double at_high = level + 1 < levels ? exp(-0.5 * high * high) * density : 0;
    const double at_low = level > 0 ? exp(-0.5 * low * low) * density : 0;

    if (level + 1 < levels) {
        s->gradient[level] += at_high;
        s->diagonal[level] += at_high * at_high + high * at_high;
    }
    if (level > 0) {
        s->gradient[level - 1] -= at_low;
        s->diagonal[level - 1] += at_low * at_low - low * at_low;
    }
    if (level > 0 && level + 1 < levels)
        s->beside[level - 1] -= at_high * at_low;
}

static void slope_block(const void *context, int unit, int thread)
{
    const struct slopes *c = context;
    const struct recsys_rows *rows = c->fit->by_user;
    const uint32_t levels = c->fit->scale->levels;
    const uint64_t users = rows->rows;

    (void)thread;
    for (uint64_t u = users * (uint64_t)unit / BLOCKS; u < users * (uint64_t)(unit + 1) / BLOCKS;
         u++)
        for (uint64_t e = rows->start[u]; e < rows->start[u + 1]; e++) {
            const double x = (double)guess_latent(c->fit, (uint32_t)u, e);
            const uint32_t l = rows->code[e];

            add_slope(&c->blocks[unit], l, levels, cut(c->cuts, levels, l) - x,
                      cut(c->cuts, levels, l + 1) - x);
        }
}

/* One Newton step; `draws`: with noise of the posterior's curvature, or NULL. */
static void move_cuts(struct recsys_fit *fit, float *cuts, struct recsys_draws *draws)
{
    struct slope *blocks = base_calloc(BLOCKS, sizeof *blocks);
    const struct slopes c = {fit, cuts, blocks};
    const int d = (int)fit->scale->levels - 1;
    double g[MOST] = {0}, h[MOST * MOST] = {0};

    base_team_run(fit->team, BLOCKS, slope_block, &c);
    for (int b = 0; b < BLOCKS; b++)
        for (int i = 0; i < d; i++) {
            g[i] += blocks[b].gradient[i];
            h[i * d + i] += blocks[b].diagonal[i];
            if (i + 1 < d)
                h[(i + 1) * d + i] += blocks[b].beside[i];
        }
    for (int i = 0; i < d; i++)
        h[i * d + i] += 1e-6; /* a level that no rating has */
    base_free(blocks);
    if (!recsys_cholesky(h, d))
        return; /* far from the mode: the cut points stay, and the rows will move */
    recsys_forward(h, d, g);
    for (int i = 0; i < d && draws != NULL; i++)
        g[i] += recsys_draw_normal(draws);
    recsys_backward(h, d, g);
    for (int i = 0; i < d; i++) {
        cuts[i] += (float)fmax(-LONGEST, fmin(LONGEST, g[i]));
        if (i > 0 && cuts[i] < cuts[i - 1] + (float)NEAREST)
            cuts[i] = cuts[i - 1] + (float)NEAREST;
    }
}

/* A normal around 0 between low and high, from a uniform number. */
static double between(double low, double high, double unit)
{
    const bool upper = low > 0; /* where differences of the lower tail are exact */
    const double a = upper ? -high : low, b = upper ? -low : high;
    const double p = recsys_phi(a) + unit * (recsys_phi(b) - recsys_phi(a));
    const double z = p < 1e-300 ? b : recsys_phi_inverse(fmin(p, 1 - 1e-16));

    return upper ? -z : z;
}

static void latent_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct slopes *c = context;
    const struct recsys_rows *rows = c->fit->by_user;
    const uint32_t levels = c->fit->scale->levels;

    (void)thread;
    for (uint32_t u = from; u < to; u++) {
        struct recsys_draws draws =
            recsys_draws_of(c->fit->seed, GIBBS_DRAW_LATENT, (uint32_t)c->fit->sweep, u);

        for (uint64_t e = rows->start[u]; e < rows->start[u + 1]; e++) {
            const double x = (double)guess_latent(c->fit, u, e);
            const double low = cut(c->cuts, levels, rows->code[e]) - x;
            const double high = cut(c->cuts, levels, rows->code[e] + 1u) - x;

            gibbs_of(c->fit)->latent[e] = (float)(x + between(low, high, recsys_draw_unit(&draws)));
        }
    }
}

base_status gibbs_latents(struct recsys_fit *fit)
{
    float *cuts = recsys_at(fit, gibbs_of(fit)->state, 0) + GIBBS_CUTS;
    const struct slopes c = {fit, cuts, NULL};
    struct recsys_draws draws =
        recsys_draws_of(fit->seed, GIBBS_DRAW_CUTS, (uint32_t)fit->sweep, 0);

    for (int i = 0; i < NEWTON_STEPS; i++)
        move_cuts(fit, cuts, i + 1 == NEWTON_STEPS ? &draws : NULL);
    recsys_each_range(fit->team, fit->by_user->start, 0, fit->users, latent_range, &c);
    return BASE_OK;
}

double gibbs_ordinal_mean(const struct recsys_scale *scale, const float *cuts, double x,
                          double *variance_p)
{
    double mean = 0, squares = 0, below = 0;

    for (uint32_t l = 0; l < scale->levels; l++) {
        const double upto =
            l + 1 < scale->levels ? recsys_phi(cut(cuts, scale->levels, l + 1) - x) : 1;
        const double value = (double)scale->level[l], p = upto - below;

        mean += p * value;
        squares += p * value * value;
        below = upto;
    }
    *variance_p = fmax(0, squares - mean * mean);
    return mean;
}

double gibbs_ordinal_latent(const struct recsys_scale *scale, const float *cuts, double x,
                            uint32_t level)
{
    const double low = cut(cuts, scale->levels, level) - x;
    const double high = cut(cuts, scale->levels, level + 1) - x;
    const double p = fmax(recsys_phi(high) - recsys_phi(low), 1e-12);

    return x + 0.3989422804014327 * (exp(-0.5 * low * low) - exp(-0.5 * high * high)) / p;
}
