/* SPDX-License-Identifier: MIT
 *
 * Implicit feedback (Hu, Koren and Volinsky 2008): what a user has clicked, played or bought counts
 * as a preference of 1 with confidence 1 + alpha * r, all the rest as 0 with confidence 1.
 * Alternating least squares, with the sum over all items (the Gramian) taken out of every row's
 * equations:
 *
 *   (YᵀY + Σ_j w_j y_j y_jᵀ + λ I) x = Σ_j (1 + w_j) y_j,   w_j = alpha * r_j, j over what it has
 *
 * A row takes a few conjugate gradient steps from where it was (Takács et al. 2011), or with cg=0
 * the exact solution, eight rows at a time.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "recsys/gauss.h"
#include "recsys/kernels/kernels.h"
#include "recsys/model_private.h"

struct ials_options {
    int64_t k, sweeps, cg;
    double alpha, lambda;
};

enum { USERS, ITEMS };                  /* phases, and their buffers */
enum { BLOCK = 1024, LONGEST = 16384 }; /* rows of a sum; ratings that are gathered once a row */

/* Of one thread. */
struct ials_scratch {
    float *panel, *w, *c;     /* (LONGEST,k), (LONGEST), (LONGEST) */
    float *triangles, *lower; /* of exact solves */
    float *x;                 /* (k,8) */
};

struct ials {
    int k;
    float *gram; /* (k,k), λ added; of the other side */
    struct ials_scratch *scratch;
    float *memory;
    int threads;
};

/* Below 0 the equations have no solution that means anything. */
static base_status check_rating(float value)
{
    return value >= 0
               ? BASE_OK
               : base_fail(BASE_ERR_DATA,
                           "model ials: ratings are how sure a preference is, from 0 on, not %g",
                           (double)value);
}

static base_status ials_reopen(struct recsys_fit *fit)
{
    const struct ials_options *o = fit->options;

    if (o->k % 8 != 0 || o->k < 8)
        return base_fail(BASE_ERR_USAGE, "model ials: k is a multiple of 8, not %d", (int)o->k);
    ((struct ials *)fit->own)->k = (int)o->k;
    fit->sweeps = o->sweeps;
    recsys_add_rows(fit, "users", RECSYS_OF_USERS, (uint32_t)o->k);
    recsys_add_rows(fit, "items", RECSYS_OF_ITEMS, (uint32_t)o->k);
    fit->answers = USERS;
    fit->traits = (struct recsys_traits){ITEMS, (uint32_t)o->k, (uint32_t)o->k, (uint32_t)o->k};
    return BASE_OK;
}

static base_status ials_open(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    const struct ials_options *o = fit->options;
    struct ials *m = fit->own;
    const size_t k = (size_t)o->k, panel = LONGEST * k;
    const size_t exact = RECSYS_LANES * recsys_triangle_floats((int)k);
    const size_t lower = recsys_lower_floats((int)k),
                 own = panel + 2 * LONGEST + exact + lower + 8 * k;

    TRY(ials_reopen(fit));
    TRY(check_rating(fit->scale->lowest));
    m->threads = base_team_threads(fit->team);
    recsys_add_phase(fit, "users", fit->users, fit->by_user->start, USERS);
    recsys_add_phase(fit, "items", fit->items, fit->by_item->start, ITEMS);
    TRY(base_tensor(k * k + (size_t)m->threads * own, sizeof(float), "scratch", &m->memory));
    fit->extra = (k * k + (size_t)m->threads * own) * sizeof(float);
    m->gram = m->memory;
    m->scratch = base_calloc((size_t)m->threads, sizeof *m->scratch);
    for (int t = 0; t < m->threads; t++) {
        float *at = m->memory + k * k + (size_t)t * own;

        m->scratch[t] = (struct ials_scratch){at,
                                              at + panel,
                                              at + panel + LONGEST,
                                              at + panel + 2 * LONGEST,
                                              at + panel + 2 * LONGEST + exact,
                                              at + panel + 2 * LONGEST + exact + lower};
    }
out:
    return st;
}

static void ials_close(struct recsys_fit *fit)
{
    struct ials *m = fit->own;

    base_free(m->memory);
    base_free(m->scratch);
}

static base_status ials_start(struct recsys_fit *fit)
{
    const struct ials *m = fit->own;
    const float scale = 0.1f / sqrtf((float)m->k);
    float z[RECSYS_MAX_K + 16];

    for (int b = USERS; b <= ITEMS; b++)
        for (uint32_t r = 0; r < fit->buffers[b].rows; r++) {
            recsys_row_normals(fit->seed, (uint32_t)b, 0, r, m->k, z);
            for (int f = 0; f < m->k; f++)
                recsys_at(fit, b, r)[f] = scale * z[f];
        }
    return BASE_OK;
}

/* ---- the Gramian ---- */

struct gramian {
    const struct recsys_buffer *buffer;
    float *triangles;
};

static void gram_block(const void *context, int unit, int thread)
{
    const struct gramian *g = context;
    const int k = (int)g->buffer->width, most = recsys_panel(k);
    const uint32_t from = (uint32_t)unit * BLOCK, left = g->buffer->rows - from;
    const uint32_t to = from + (left < BLOCK ? left : BLOCK);

    (void)thread;
    for (uint32_t r = from; r < to; r += (uint32_t)most)
        recsys_kernels()->syrk(k, g->buffer->at + (size_t)r * (size_t)k,
                               to - r < (uint32_t)most ? (int)(to - r) : most,
                               g->triangles + (size_t)unit * recsys_triangle_floats(k), NULL);
}

/* Blocks of rows are summed by themselves, and those sums in their order. */
static base_status ials_prepare(struct recsys_fit *fit, int phase)
{
    base_status st = BASE_OK;
    const struct ials_options *o = fit->options;
    struct ials *m = fit->own;
    struct gramian g = {&fit->buffers[phase == USERS ? ITEMS : USERS], NULL};
    const uint32_t blocks = (g.buffer->rows + BLOCK - 1) / BLOCK;
    const size_t size = recsys_triangle_floats(m->k);

    TRY(base_tensor(blocks * size, sizeof(float), "a Gramian", &g.triangles));
    base_team_run(fit->team, (int)blocks, gram_block, &g);
    for (int i = 0; i < m->k; i++)
        for (int j = i; j < m->k; j++) {
            double sum = i == j ? o->lambda : 0;

            for (uint32_t b = 0; b < blocks; b++)
                sum += (double)g.triangles[b * size + recsys_triangle_at(m->k, i, j)];
            m->gram[i * m->k + j] = m->gram[j * m->k + i] = (float)sum;
        }
out:
    base_free(g.triangles);
    return st;
}

/* ---- rows ---- */

struct solving {
    struct recsys_fit *fit;
    const struct recsys_kernels *kernels;
    const struct recsys_rows *rows;
    const float *other;
    float *mine;
    float alpha;
    int k, steps;
};

/* n ratings from e on: rows, weights w and targets c = 1 + w, filled up to a multiple of four. */
static int gather(const struct solving *s, uint64_t e, int n, struct ials_scratch *t)
{
    const size_t k = (size_t)s->k;

    recsys_values(s->fit->scale, s->rows, e, n, 0, t->w);
    s->kernels->gather(s->k, s->other, s->rows->column + e, n, t->panel);
    for (int j = 0; j < n; j++) {
        t->w[j] *= s->alpha;
        t->c[j] = 1 + t->w[j];
    }
    for (; n % 4 != 0; n++) {
        memset(t->panel + (size_t)n * k, 0, k * sizeof(float));
        t->w[n] = t->c[n] = 0;
    }
    return n;
}

/* out = (G + Σ w y yᵀ) v, or with `residual` the right-hand side less that. A long row is gathered
 * anew for each product. */
static void product(const struct solving *s, uint32_t row, bool residual, const float *v,
                    struct ials_scratch *t, float *out)
{
    const struct ials *m = s->fit->own;
    const uint64_t from = s->rows->start[row], count = s->rows->start[row + 1] - from;
    float signed_v[RECSYS_MAX_K];

    memset(out, 0, (size_t)s->k * sizeof *out);
    for (int f = 0; f < s->k; f++)
        signed_v[f] = residual ? -v[f] : v[f];
    s->kernels->project(s->k, m->gram, signed_v, s->k, out);
    for (uint64_t e = 0; e < count; e += LONGEST) {
        int n = count - e < LONGEST ? (int)(count - e) : LONGEST;

        if (residual || count > LONGEST)
            n = gather(s, from + e, n, t);
        else
            n = (n + 3) / 4 * 4;
        s->kernels->weigh(s->k, t->panel, n, t->w, residual ? t->c : NULL, v, out);
    }
}

static void few_steps(const struct solving *s, uint32_t row, struct ials_scratch *t)
{
    float *x = s->mine + (size_t)row * (size_t)s->k;
    _Alignas(32) float rest[RECSYS_MAX_K], along[RECSYS_MAX_K], changed[RECSYS_MAX_K];
    float now;

    product(s, row, true, x, t, rest);
    memcpy(along, rest, (size_t)s->k * sizeof *along);
    now = s->kernels->dot(s->k, rest, rest);
    for (int i = 0; i < s->steps && now > 1e-20f; i++) {
        float step, next;

        product(s, row, false, along, t, changed);
        step = now / s->kernels->dot(s->k, along, changed);
        for (int f = 0; f < s->k; f++) {
            x[f] += step * along[f];
            rest[f] -= step * changed[f];
        }
        next = s->kernels->dot(s->k, rest, rest);
        for (int f = 0; f < s->k; f++)
            along[f] = rest[f] + next / now * along[f];
        now = next;
    }
}

static void exact_row(const struct solving *s, uint32_t row, float *triangle, int lane,
                      struct ials_scratch *t)
{
    const int most = recsys_panel(s->k);
    float sum[RECSYS_MAX_K] = {0};

    for (uint64_t e = s->rows->start[row]; e < s->rows->start[row + 1]; e += (uint64_t)most) {
        const uint64_t left = s->rows->start[row + 1] - e;
        const int n = left < (uint64_t)most ? (int)left : most;

        gather(s, e, n, t);
        s->kernels->project(s->k, t->panel, t->c, n, sum);
        for (int j = 0; j < n; j++) {
            const float root = sqrtf(t->w[j]);

            for (int f = 0; f < s->k; f++)
                t->panel[j * s->k + f] *= root;
        }
        s->kernels->syrk(s->k, t->panel, n, triangle, NULL);
    }
    for (int f = 0; f < s->k; f++)
        t->x[8 * f + lane] = sum[f];
}

static void exact_rows(const struct solving *s, uint32_t from, int lanes, struct ials_scratch *t)
{
    static const float ones[RECSYS_LANES] = {1, 1, 1, 1, 1, 1, 1, 1};
    const struct ials *m = s->fit->own;
    const size_t size = recsys_triangle_floats(s->k);

    memset(t->triangles, 0, RECSYS_LANES * size * sizeof(float));
    for (int l = 0; l < lanes; l++)
        exact_row(s, from + (uint32_t)l, t->triangles + (size_t)l * size, l, t);
    s->kernels->lanes_gather(s->k, t->triangles, m->gram, ones, t->lower);
    s->kernels->lanes_cholesky(s->k, t->lower);
    s->kernels->lanes_solve(s->k, t->lower, t->x, NULL);
    for (int l = 0; l < lanes; l++)
        for (int f = 0; f < s->k; f++)
            s->mine[((size_t)from + (size_t)l) * (size_t)s->k + (size_t)f] = t->x[8 * f + l];
}

static void ials_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct solving *s = context;
    struct ials_scratch *t = &((const struct ials *)s->fit->own)->scratch[thread];

    if (s->steps > 0)
        for (uint32_t r = from; r < to; r++)
            few_steps(s, r, t);
    else
        for (uint32_t r = from; r < to; r += RECSYS_LANES)
            exact_rows(s, r, to - r < RECSYS_LANES ? (int)(to - r) : RECSYS_LANES, t);
}

static void ials_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to)
{
    const struct ials_options *o = fit->options;
    const struct solving s = {
        .fit = fit,
        .kernels = recsys_kernels(),
        .rows = phase == USERS ? fit->by_user : fit->by_item,
        .other = fit->buffers[phase == USERS ? ITEMS : USERS].at,
        .mine = fit->buffers[phase].at,
        .alpha = (float)o->alpha,
        .k = (int)o->k,
        .steps = (int)o->cg,
    };

    recsys_each_range(fit->team, s.rows->start, from, to, ials_range, &s);
}

/* ---- answers ---- */

static struct recsys_guess ials_guess(const struct recsys_fit *fit, const float *user,
                                      uint32_t item, uint32_t time)
{
    const struct ials *m = fit->own;

    (void)time;
    if (user == NULL || item == RECSYS_UNKNOWN)
        return (struct recsys_guess){0, NAN};
    return (struct recsys_guess){recsys_kernels()->dot(m->k, user, recsys_at(fit, ITEMS, item)),
                                 NAN};
}

static void ials_scores(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                        float *values)
{
    const struct ials *m = fit->own;
    const struct recsys_kernels *kernels = recsys_kernels();

    for (uint32_t i = from; i < to; i++)
        values[i - from] = user != NULL ? kernels->dot(m->k, user, recsys_at(fit, ITEMS, i)) : 0;
}

static double ials_weight(const struct recsys_fit *fit, const struct recsys_rating *rating)
{
    return ((const struct ials_options *)fit->options)->alpha * (double)rating->value;
}

static void ials_add(const struct recsys_fit *fit, uint32_t item, double weight, double target,
                     double *a, double *b)
{
    const int k = ((const struct ials *)fit->own)->k;
    double y[RECSYS_MAX_K];

    for (int f = 0; f < k; f++)
        y[f] = (double)recsys_at(fit, ITEMS, item)[f];
    recsys_add_equation(a, b, k, y, weight, target);
}

/* The equations of a new user's row: the factor of their matrix a (k,k), their right side b (k). */
static base_status ials_equations(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                                  uint32_t count, double *a, double *b)
{
    base_status st = BASE_OK;
    const struct ials_options *o = fit->options;
    const int k = (int)o->k;

    for (uint32_t j = 0; j < count; j++)
        TRY(check_rating(ratings[j].value));
    for (uint32_t i = 0; i < fit->items; i++)
        ials_add(fit, i, 1, 0, a, b);
    for (uint32_t j = 0; j < count; j++) {
        const double w = ials_weight(fit, &ratings[j]);

        ials_add(fit, ratings[j].item, w, 1 + w, a, b);
    }
    for (int f = 0; f < k; f++)
        a[f * k + f] += o->lambda;
    if (!recsys_cholesky(a, k))
        TRY(base_fail(BASE_ERR_DIVERGED, "the items' rows are not numbers"));
out:
    return st;
}

static base_status ials_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                             uint32_t count, float *row)
{
    base_status st = BASE_OK;
    const int k = ((const struct ials *)fit->own)->k;
    double *a = base_calloc((size_t)k * (size_t)k, sizeof *a), b[RECSYS_MAX_K] = {0};

    TRY(ials_equations(fit, ratings, count, a, b));
    recsys_solve(a, k, b);
    for (int f = 0; f < k; f++)
        row[f] = (float)b[f];
out:
    base_free(a);
    return st;
}

/* The guess is <y, A⁻¹ Σ (1 + w_j) y_j>: each rating's term of it (Hu, Koren and Volinsky 2008,
 * section 5). */
static base_status ials_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                                uint32_t count, uint32_t item, float *parts, float *rest_p)
{
    base_status st = BASE_OK;
    const int k = ((const struct ials *)fit->own)->k;
    double *a = base_calloc((size_t)k * (size_t)k, sizeof *a), z[RECSYS_MAX_K] = {0};

    TRY(ials_equations(fit, ratings, count, a, z));
    for (int f = 0; f < k; f++)
        z[f] = (double)recsys_at(fit, ITEMS, item)[f];
    recsys_solve(a, k, z);
    for (uint32_t j = 0; j < count; j++) {
        const float *y = recsys_at(fit, ITEMS, ratings[j].item);
        double sum = 0;

        for (int f = 0; f < k; f++)
            sum += (double)y[f] * z[f];
        parts[j] = (float)((1 + ials_weight(fit, &ratings[j])) * sum);
    }
    *rest_p = 0;
out:
    base_free(a);
    return st;
}

/* clang-format off */
#define AT(field) offsetof(struct ials_options, field)
static const struct base_option options[] = {
    {.name = "k", .argument = "N", .kind = BASE_INT, .min = 8, .max = RECSYS_MAX_K,
     .offset = AT(k), .help = "factors of a row, a multiple of 8"},
    {.name = "sweeps", .argument = "N", .kind = BASE_INT, .min = 1, .max = 10000,
     .offset = AT(sweeps), .help = "solves of all users and items"},
    {.name = "cg", .argument = "N", .kind = BASE_INT, .min = 0, .max = 100, .offset = AT(cg),
     .help = "conjugate gradient steps of a row; 0: exact solutions"},
    {.name = "alpha", .argument = "X", .kind = BASE_REAL, .min = 1e-6, .max = 1e6,
     .offset = AT(alpha), .help = "confidence that a value of 1 adds"},
    {.name = "lambda", .argument = "X", .kind = BASE_REAL, .min = 1e-6, .max = 1e6,
     .offset = AT(lambda), .help = "L2 regularisation"},
    {0}};
/* clang-format on */

extern const struct recsys_model recsys_model_ials;
const struct recsys_model recsys_model_ials = {
    .name = "ials",
    .help = "factors of clicks and plays: weighted implicit least squares",
    .implicit = true,
    .by_item = true,
    .options = options,
    .options_size = sizeof(struct ials_options),
    .defaults =
        &(const struct ials_options){.k = 64, .sweeps = 15, .cg = 3, .alpha = 1, .lambda = 0.05},
    .examples = (const char *const[]){"k=16,sweeps=3", "k=24,sweeps=3,cg=0", NULL},
    .own_size = sizeof(struct ials),
    .open = ials_open,
    .reopen = ials_reopen,
    .close = ials_close,
    .start = ials_start,
    .prepare = ials_prepare,
    .run = ials_run,
    .guess = ials_guess,
    .scores = ials_scores,
    .fold = ials_fold,
    .explain = ials_explain,
};
