/* SPDX-License-Identifier: MIT
 *
 * The half-sweep: a new draw of every row of one side, given the others. Eight rows at a time: the
 * normal equations of each from its ratings, panel by panel in their order, then factors and draws
 * of all eight in lanes. Lanes do not touch each other, so it does not matter which rows share
 * them.
 */
#include <math.h>
#include <string.h>

#include "recsys/gibbs.h"
#include "recsys/model_private.h"

struct half {
    struct recsys_fit *fit;
    const struct recsys_kernels *kernels;
    const struct gibbs_side *side;
    const float *rows, *more; /* factors of the other sides */
    const float *user_noise;  /* (users), of ratings seen from another side; or NULL */
    const float *row_noise;   /* (rows), of this side's own rows; or NULL */
    int which, k;
    float alpha, mean;
};

/* Values of n ratings from e on, less the mean, and their weights' square roots. */
static void load_ratings(const struct half *h, uint64_t e, int n, float *y, float *weight)
{
    const struct gibbs *g = gibbs_of(h->fit);
    const struct gibbs_side *s = h->side;

    if (!g->ordinal && s->place == NULL)
        recsys_values(h->fit->scale, s->rows, e, n, h->mean, y);
    else
        for (int j = 0; j < n; j++) {
            const uint64_t at = s->place != NULL ? s->place[e + (uint64_t)j] : e + (uint64_t)j;

            y[j] = g->ordinal ? g->latent[at] : recsys_value(h->fit->scale, s->rows, at) - h->mean;
        }
    for (int j = 0; j < (h->user_noise != NULL ? n : 0); j++)
        weight[j] = sqrtf(h->user_noise[s->column[e + (uint64_t)j]]);
}

/* The rows that come after rating e of row r: of the same row, or of the next one. */
static struct recsys_ahead what_follows(const struct half *h, uint64_t e, uint32_t r)
{
    const struct gibbs_side *s = h->side;
    const uint64_t panel = (uint64_t)recsys_panel(h->k);
    uint64_t end = s->start[r + 1];

    if (e == end && r + 1 < s->count)
        end = s->start[r + 2];
    return (struct recsys_ahead){h->rows, s->column + e, (int)(end - e < panel ? end - e : panel)};
}

/* A, b and Σ y² of one row: triangle += Σ x xᵀ, sum += Σ y x. */
static double row_equations(const struct half *h, uint32_t r, float *panel, float *triangle,
                            float *sum)
{
    const struct gibbs_side *s = h->side;
    const int most = recsys_panel(h->k);
    float y[RECSYS_MAX_PANEL], weight[RECSYS_MAX_PANEL];
    double squares = 0;

    for (uint64_t e = s->start[r]; e < s->start[r + 1];) {
        const uint64_t left = s->start[r + 1] - e;
        const struct recsys_pack pack = {
            .k = h->k,
            .n = left < (uint64_t)most ? (int)left : most,
            .own = s->own,
            .other_own = gibbs_of(h->fit)->side[s->first].own,
            .rows = h->rows,
            .index = s->column + e,
            .more = h->more,
            .more_index = s->second_column != NULL ? s->second_column + e : NULL,
            .weight = h->user_noise != NULL ? weight : NULL,
        };
        struct recsys_ahead next;

        load_ratings(h, e, pack.n, y, weight);
        h->kernels->pack(&pack, panel, y);
        squares += h->kernels->project(h->k, panel, y, pack.n, sum);
        e += (uint64_t)pack.n;
        next = what_follows(h, e, r);
        h->kernels->syrk(h->k, panel, pack.n, triangle, &next);
    }
    return squares;
}

/* x and noise (k,8): the right-hand side alpha b + lambda (mu + effect), and normals. */
static void lane_of(const struct half *h, uint32_t r, int lane, const float *sum, float alpha,
                    struct gibbs_scratch *scratch)
{
    const struct gibbs_side *s = h->side;
    const int k = h->k;
    float z[RECSYS_MAX_K + 16], right[RECSYS_MAX_K], effect[RECSYS_MAX_K];

    recsys_row_normals(h->fit->seed, GIBBS_DRAW_ROW + (uint32_t)h->which, (uint32_t)h->fit->sweep,
                       r, k, z);
    memcpy(right, s->prior_mean, (size_t)k * sizeof *right);
    if (s->effects >= 0) {
        for (int f = 0; f < k; f += 8)
            memcpy(effect + f, recsys_at(h->fit, s->effects, (size_t)f / 8) + 8 * (size_t)r,
                   8 * sizeof *effect);
        h->kernels->project(k, s->prior, effect, k, right);
    }
    for (int f = 0; f < k; f++) {
        scratch->noise[8 * f + lane] = z[f];
        scratch->x[8 * f + lane] = alpha * sum[f] + right[f];
    }
}

/* The row's squared errors from its equations alone: Σ y² - 2 b·x + xᵀ A x. */
static float squared_error(const struct half *h, const float *triangle, const float *sum,
                           double squares, const float *x)
{
    const double product = (double)h->kernels->dot(h->k, sum, x);
    const double error = squares - 2 * product + (double)h->kernels->quadratic(h->k, triangle, x);

    return error > 0 ? (float)error : 0;
}

enum { SETTLING = 3, NOISE_SHAPE = 5 }; /* sweeps before noises differ; of their Gamma prior */

/* Precision of a user's noise, as a factor of alpha. */
static void draw_noise(const struct half *h, uint32_t user, float error)
{
    const struct gibbs *g = gibbs_of(h->fit);
    const double n = (double)recsys_row_count(h->fit->by_user, user);
    struct recsys_draws draws =
        recsys_draws_of(h->fit->seed, GIBBS_DRAW_NOISE, (uint32_t)h->fit->sweep, user);

    if (h->fit->sweep >= SETTLING)
        *recsys_at(h->fit, g->user_noise, user) =
            (float)(recsys_draw_gamma(&draws, NOISE_SHAPE + 0.5 * n) /
                    (NOISE_SHAPE + 0.5 * (double)h->alpha * (double)error));
}

static void eight_rows(const struct half *h, uint32_t from, int lanes,
                       struct gibbs_scratch *scratch)
{
    const struct gibbs_side *s = h->side;
    const size_t k = (size_t)h->k, size = recsys_triangle_floats(h->k);
    float alpha[RECSYS_LANES] = {0};
    double squares[RECSYS_LANES];

    memset(scratch->triangles, 0, RECSYS_LANES * size * sizeof(float));
    memset(scratch->sums, 0, RECSYS_LANES * k * sizeof(float));
    for (int l = 0; l < lanes; l++) {
        const uint32_t r = from + (uint32_t)l;
        float *sum = scratch->sums + (size_t)l * k;

        squares[l] =
            row_equations(h, r, scratch->panel, scratch->triangles + (size_t)l * size, sum);
        alpha[l] = h->alpha * (h->row_noise != NULL ? h->row_noise[r] : 1);
        lane_of(h, r, l, sum, alpha[l], scratch);
    }
    h->kernels->lanes_gather(h->k, scratch->triangles, s->prior, alpha, scratch->lower);
    h->kernels->lanes_cholesky(h->k, scratch->lower);
    h->kernels->lanes_solve(h->k, scratch->lower, scratch->x, scratch->noise);
    for (int l = 0; l < lanes; l++) {
        const uint32_t r = from + (uint32_t)l;
        float *row = recsys_at(h->fit, s->factors, r);
        float *error = recsys_at(h->fit, s->errors, r);

        for (size_t f = 0; f < k; f++)
            row[f] = scratch->x[8 * f + (size_t)l];
        row[s->fixed] = 0;
        *error = squared_error(h, scratch->triangles + (size_t)l * size,
                               scratch->sums + (size_t)l * k, squares[l], row);
        row[s->fixed] = h->which != GIBBS_TIMES;
        if (h->row_noise != NULL)
            draw_noise(h, r, *error);
    }
}

static void rows_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct half *h = context;

    for (uint32_t r = from; r < to; r += RECSYS_LANES)
        eight_rows(h, r, to - r < RECSYS_LANES ? (int)(to - r) : RECSYS_LANES,
                   &gibbs_of(h->fit)->scratch[thread]);
}

void gibbs_rows(struct recsys_fit *fit, int side, uint32_t from, uint32_t to)
{
    const struct gibbs *g = gibbs_of(fit);
    const struct gibbs_side *s = &g->side[side];
    const float *noise = g->user_noise >= 0 ? fit->buffers[g->user_noise].at : NULL;
    const struct half h = {
        .fit = fit,
        .kernels = recsys_kernels(),
        .side = s,
        .rows = fit->buffers[g->side[s->first].factors].at,
        .more = s->second >= 0 ? fit->buffers[g->side[s->second].factors].at : NULL,
        .user_noise = side != GIBBS_USERS ? noise : NULL,
        .row_noise = side == GIBBS_USERS ? noise : NULL,
        .which = side,
        .k = g->k,
        .alpha = *recsys_at(fit, g->state, 0),
        .mean = g->ordinal ? 0 : fit->mean,
    };

    recsys_each_range(fit->team, s->start, from, to, rows_range, &h);
}
