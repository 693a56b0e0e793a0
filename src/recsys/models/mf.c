/* SPDX-License-Identifier: MIT
 *
 * Biased matrix factorisation by stochastic gradient descent: r = mean + b_u + b_i + <p,q>, squared
 * or absolute loss, L2 in proportion to a row's ratings. A user's row is (p, 1, b_u), an item's
 * (q, b_i, 1), in the unit of the cells. Biases begin at their exact solution, factors small and
 * random.
 *
 * An epoch goes over the cells (recsys/cells.h) in sub-epochs of cells that share no row, one for
 * each stripe of users. So the result depends on the number of blocks, not on that of threads.
 *
 * Several workers divide the users (recsys/rotation.h): the groups of items make up bundles, and a
 * worker that has a bundle goes over it with its own users, in as many sub-epochs as it has groups.
 * One worker has one bundle.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "recsys/bias.h"
#include "recsys/cells.h"
#include "recsys/gauss.h"
#include "recsys/model_private.h"
#include "recsys/rotation.h"

enum mf_loss { SQUARED, ABSOLUTE };

struct mf_options {
    int64_t k, sweeps, blocks, rotations;
    int loss;
    double rate, last_rate, lambda, bias_lambda; /* a lambda of 0: by the number of ratings */
};

enum { USERS, ITEMS }; /* buffers */

struct mf {
    int k;
    double lambda, bias_lambda;
    struct recsys_cells cells;
    float *groups;             /* the one bundle of a fit that is not divided */
    float *decay, *bias_decay; /* (longest + 1) */
    double rate;               /* of the epoch */
};

/* ---- set-up ---- */

enum { GROUP_BYTES = 1 << 20, LEAST_BLOCKS = 4, MOST_BLOCKS = 16 };

/* Groups of items that stay in a core's cache. */
static uint32_t mf_blocks(const struct recsys_fit *fit, int k)
{
    const uint64_t bytes = (uint64_t)fit->items * (uint64_t)k * sizeof(float);
    const uint64_t blocks = (bytes + GROUP_BYTES - 1) / GROUP_BYTES;
    const uint32_t least = fit->items / (UINT16_MAX - 1) + 1; /* a row has a number of two bytes */

    return blocks < LEAST_BLOCKS  ? LEAST_BLOCKS
           : blocks < MOST_BLOCKS ? (uint32_t)blocks
           : least < MOST_BLOCKS  ? MOST_BLOCKS
                                  : least;
}

/* 0.1 is best for 100 k ratings, 0.02 for 100 M; in between, by the logarithm. */
static double mf_lambda(uint64_t ratings)
{
    const double tens = fmin(fmax(log10((double)ratings), 5), 8);

    return 0.1 * pow(0.2, (tens - 5) / 3);
}

/* A step that takes more than all of a row has no use. */
static base_status mf_check_decay(const char *name, double lambda, double rate)
{
    return lambda * rate < 1
               ? BASE_OK
               : base_fail(BASE_ERR_USAGE, "model mf: %s times rate is %g, not below 1", name,
                           lambda * rate);
}

enum { UNIT, LAMBDA, BIAS_LAMBDA, FACTS }; /* of the fit */

static base_status mf_declare(struct recsys_fit *fit)
{
    const struct mf_options *o = fit->options;

    if (o->k % 8 != 0)
        return base_fail(BASE_ERR_USAGE, "model mf: k is a multiple of 8, not %d", (int)o->k);
    ((struct mf *)fit->own)->k = (int)o->k;
    fit->sweeps = o->sweeps;
    recsys_add_rows(fit, "users", RECSYS_OF_USERS, (uint32_t)o->k);
    recsys_add_rows(fit, "items", RECSYS_OF_ITEMS, (uint32_t)o->k);
    fit->answers = USERS;
    fit->traits = (struct recsys_traits){ITEMS, (uint32_t)o->k, (uint32_t)o->k, (uint32_t)o->k - 2};
    return BASE_OK;
}

static base_status mf_reopen(struct recsys_fit *fit)
{
    struct mf *m = fit->own;

    if (fit->fact_count != FACTS || !(fit->facts[UNIT] > 0) || !(fit->facts[LAMBDA] >= 0) ||
        !(fit->facts[BIAS_LAMBDA] >= 0))
        return base_fail(BASE_ERR_DATA, "the facts of a model mf are its unit and two penalties");
    m->cells.unit = (float)fit->facts[UNIT];
    m->lambda = fit->facts[LAMBDA];
    m->bias_lambda = fit->facts[BIAS_LAMBDA];
    return mf_declare(fit);
}

static base_status mf_open(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    const struct mf_options *o = fit->options;
    struct mf *m = fit->own;

    TRY(mf_declare(fit));
    m->lambda = o->lambda > 0 ? o->lambda : mf_lambda(fit->by_user->count);
    m->bias_lambda = o->bias_lambda > 0 ? o->bias_lambda : m->lambda / 4;
    TRY(mf_check_decay("lambda", m->lambda, o->rate));
    TRY(mf_check_decay("bias-lambda", m->bias_lambda, o->rate));
    fit->again = (struct recsys_again){o->sweeps / 2, o->sweeps}; /* the rate is not too low yet */
    recsys_add_phase(fit, "epoch", 1, NULL, USERS);
    fit->phases[0].write_count = 0; /* a unit that is not divided */
    recsys_cells_scale(&m->cells, fit);
    fit->facts[UNIT] = (double)m->cells.unit;
    fit->facts[LAMBDA] = m->lambda;
    fit->facts[BIAS_LAMBDA] = m->bias_lambda;
    fit->fact_count = FACTS;
out:
    return st;
}

static void mf_close(struct recsys_fit *fit)
{
    struct mf *m = fit->own;

    recsys_cells_fini(&m->cells);
    base_free(m->groups);
    base_free(m->decay);
    base_free(m->bias_decay);
    m->cells = (struct recsys_cells){.unit = m->cells.unit};
    m->groups = m->decay = m->bias_decay = NULL;
}

/* ---- layout ---- */

static struct recsys_shape mf_shape(const struct recsys_fit *fit, const struct recsys_part *part)
{
    const struct mf_options *o = fit->options;
    const uint32_t blocks = o->blocks > 0 ? (uint32_t)o->blocks : mf_blocks(fit, (int)o->k);
    const uint32_t most = RECSYS_MOST_GROUPS / part->bundles;
    uint32_t stripes = (blocks + part->bundles - 1) / part->bundles;

    if (o->blocks == 0 && stripes < part->least)
        stripes = part->least;
    if (part->bundles > 1 && stripes > most && most > 0)
        stripes = most;
    return (struct recsys_shape){.from = part->from,
                                 .to = part->to,
                                 .stripes = stripes,
                                 .groups = stripes * part->bundles,
                                 .rotations = (uint32_t)o->rotations};
}

static base_status mf_lay_out(struct recsys_fit *fit, const struct recsys_part *part)
{
    base_status st = BASE_OK;
    struct mf *m = fit->own;
    const struct recsys_shape shape = mf_shape(fit, part);

    mf_close(fit);
    TRY(recsys_cells_init(&m->cells, fit, &shape));
    TRY(base_tensor(m->cells.longest + 1, sizeof(float), "decays", &m->decay));
    TRY(base_tensor(m->cells.longest + 1, sizeof(float), "decays", &m->bias_decay));
out:
    return st;
}

/* Three bytes a rating, padded to eight of a user in a group; the rows of items in groups. */
static double mf_bytes(const struct recsys_fit *fit, int workers)
{
    const struct mf_options *o = fit->options;
    const double ratings = (double)fit->by_user->count / workers;
    const double groups = fmax(2 * workers, mf_blocks(fit, (int)o->k));
    const double runs = fmin((double)fit->users / workers * groups, ratings);

    return 3 * (ratings + 3.5 * runs) + sizeof(struct recsys_run) * runs +
           (double)fit->items * (double)(o->k + 2) * sizeof(float);
}

/* A bundle is (stripes, group_rows + 1, k): the items' rows as cells want them. */
static size_t mf_floats(const struct recsys_fit *fit)
{
    const struct mf *m = fit->own;

    return (size_t)m->cells.shape.stripes * (m->cells.group_rows + 1) * (size_t)m->k;
}

static base_status mf_prepare(struct recsys_fit *fit, int phase)
{
    base_status st = BASE_OK;
    struct mf *m = fit->own;

    (void)phase;
    if (m->groups != NULL)
        return BASE_OK;
    TRY(mf_lay_out(fit, &(struct recsys_part){.to = fit->users, .bundles = 1, .least = 1}));
    TRY(base_tensor(mf_floats(fit), sizeof(float), "groups of items", &m->groups));
out:
    return st;
}

/* ---- starting values ---- */

static const double USER_DAMPING = 5, ITEM_DAMPING = 3;
enum { BIAS_SWEEPS = 4 };

struct starting {
    struct recsys_fit *fit;
    const float *biases;
    int side;
};

/* Rows without ratings have no factors. */
static void mf_start_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct starting *s = context;
    const struct mf *m = s->fit->own;
    const int k = m->k;
    const int own = s->side == USERS ? k - 1 : k - 2, one = s->side == USERS ? k - 2 : k - 1;

    (void)thread;
    for (uint32_t r = from; r < to; r++) {
        const struct base_rng rng =
            base_rng_of(s->fit->seed, BASE_STREAM_INIT, (uint32_t)s->side, 0, r);
        float *row = recsys_at(s->fit, s->side, r);
        const bool rated = s->side == USERS ? recsys_row_count(s->fit->by_user, r) > 0
                                            : s->fit->item_counts[r] > 0;

        for (int f = 0; f < (rated ? k : 0); f += 4) {
            uint32_t words[4];

            base_rng_block(&rng, (uint32_t)f / 4, words);
            for (int i = 0; i < 4; i++)
                row[f + i] = 0.2f * base_rng_unit(words[i]) - 0.1f;
        }
        row[own] = s->biases[r] / m->cells.unit;
        row[one] = 1;
    }
}

static base_status mf_start(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    float *users = NULL, *items = NULL;

    TRY(base_tensor(fit->users, sizeof *users, "biases", &users));
    TRY(base_tensor(fit->items, sizeof *items, "biases", &items));
    TRY(recsys_bias_alternate(fit, USER_DAMPING, ITEM_DAMPING, BIAS_SWEEPS, users, items));
    for (int side = USERS; side <= ITEMS; side++) {
        const struct starting s = {fit, side == USERS ? users : items, side};

        recsys_each_range(fit->team, NULL, fit->buffers[side].first,
                          fit->buffers[side].first + fit->buffers[side].held, mf_start_range, &s);
    }
out:
    base_free(users);
    base_free(items);
    return st;
}

/* ---- an epoch ---- */

/* Is the item in one of the bundles from … to-1? */
static bool mf_bundled(const struct mf *m, uint32_t item, uint32_t from, uint32_t to)
{
    const uint32_t each = m->cells.shape.stripes * (m->cells.group_rows + 1);
    const uint32_t bundle = m->cells.place[item] / each;

    return bundle >= from && bundle < to;
}

struct sub_epoch {
    const struct mf *m;
    struct recsys_sgd sgd;
    float *groups; /* of all bundles */
    uint32_t rotation, bundle, turn;
};

/* L2 of a group's items, for as many of their ratings as the stripe has. */
static void decay_items(const struct mf *m, uint32_t group, double rate, double share, float *items)
{
    const double factor = log(1 - rate * m->lambda) * share;
    const double bias = log(1 - rate * m->bias_lambda) * share;
    const float *count = m->cells.item_counts + group * (m->cells.group_rows + 1);

    for (uint32_t i = 0; i < m->cells.group_rows; i++) {
        float *row = items + (size_t)i * (size_t)m->k;
        const float scale = expf((float)(count[i] * factor)), own = row[m->k - 2];

        for (int f = 0; f < m->k - 2; f++)
            row[f] *= scale;
        row[m->k - 2] = own * expf((float)(count[i] * bias));
    }
}

static void mf_cell(const void *context, int unit, int thread)
{
    const struct sub_epoch *e = context;
    const struct recsys_cells *c = &e->m->cells;
    const uint32_t stripes = c->shape.stripes, stripe = (uint32_t)unit;
    const uint32_t group = e->bundle * stripes + (stripe + e->turn) % stripes;
    struct recsys_sgd sgd = e->sgd;

    (void)thread;
    sgd.items = e->groups + (size_t)group * (c->group_rows + 1) * (size_t)e->m->k;
    decay_items(e->m, group, (double)sgd.rate, (double)c->share[e->rotation * stripes + stripe],
                sgd.items);
    recsys_kernels()->sgd(&sgd, &c->cell[recsys_cell_at(&c->shape, e->rotation, stripe, group)]);
}

/* Falls from `rate` to last_rate * rate, by the same factor each epoch. */
static double rate_of(const struct recsys_fit *fit)
{
    const struct mf_options *o = fit->options;
    const double done = fit->sweeps > 1 ? (double)fit->sweep / (double)(fit->sweeps - 1) : 0;

    return o->rate * pow(o->last_rate, done < 1 ? done : 1);
}

static void mf_begin(struct recsys_fit *fit, uint32_t from, uint32_t to, float *bundles)
{
    struct mf *m = fit->own;
    const size_t k = (size_t)m->k;

    m->rate = rate_of(fit);
    for (uint32_t n = 0; n <= m->cells.longest; n++) {
        m->decay[n] = (float)pow(1 - m->rate * m->lambda, n);
        m->bias_decay[n] = (float)pow(1 - m->rate * m->bias_lambda, n);
    }
    for (uint32_t i = 0; i < fit->items; i++)
        if (mf_bundled(m, i, from, to))
            memcpy(bundles + m->cells.place[i] * k, recsys_at(fit, ITEMS, i), k * sizeof(float));
}

static void mf_train(struct recsys_fit *fit, float *users, float *bundles, uint32_t rotation,
                     uint32_t bundle)
{
    const struct mf *m = fit->own;
    struct sub_epoch e = {
        .m = m,
        .sgd = {.k = m->k,
                .rate = (float)m->rate,
                .scale = m->cells.scale,
                .offset = m->cells.offset,
                .absolute = ((const struct mf_options *)fit->options)->loss == ABSOLUTE,
                .decay = m->decay,
                .bias_decay = m->bias_decay,
                .users = users},
        .groups = bundles,
        .rotation = rotation,
        .bundle = bundle};

    for (; e.turn < m->cells.shape.stripes; e.turn++)
        base_team_run(fit->team, (int)m->cells.shape.stripes, mf_cell, &e);
}

static void mf_end(const struct recsys_fit *fit, uint32_t from, uint32_t to, const float *bundles,
                   float *items)
{
    const struct mf *m = fit->own;
    const size_t k = (size_t)m->k;

    for (uint32_t i = 0; i < fit->items; i++)
        if (mf_bundled(m, i, from, to))
            memcpy(items + i * k, bundles + m->cells.place[i] * k, k * sizeof(float));
}

static uint32_t mf_rotations(const struct recsys_fit *fit)
{
    return (uint32_t)((const struct mf_options *)fit->options)->rotations;
}

static void mf_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to)
{
    float *groups = ((const struct mf *)fit->own)->groups;

    (void)phase;
    if (from == to)
        return;
    mf_begin(fit, 0, 1, groups);
    for (uint32_t rotation = 0; rotation < mf_rotations(fit); rotation++)
        mf_train(fit, fit->buffers[USERS].at, groups, rotation, 0);
    mf_end(fit, 0, 1, groups, fit->buffers[ITEMS].at);
}

/* ---- answers ---- */

static struct recsys_guess mf_guess(const struct recsys_fit *fit, const float *user, uint32_t item,
                                    uint32_t time)
{
    const struct mf *m = fit->own;
    const float *row = item != RECSYS_UNKNOWN ? recsys_at(fit, ITEMS, item) : NULL;
    float x = 0;

    (void)time;
    if (user != NULL && row != NULL)
        x = recsys_kernels()->dot(m->k, user, row);
    else if (user != NULL)
        x = user[m->k - 1];
    else if (row != NULL)
        x = row[m->k - 2];
    return (struct recsys_guess){fit->mean + m->cells.unit * x, NAN};
}

static void mf_scores(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                      float *values)
{
    const struct mf *m = fit->own;
    const struct recsys_kernels *kernels = recsys_kernels();

    for (uint32_t i = from; i < to; i++) {
        const float *row = recsys_at(fit, ITEMS, i);
        const float x = user != NULL ? kernels->dot(m->k, user, row) : row[m->k - 2];

        values[i - from] = fit->mean + m->cells.unit * x;
    }
}

/* What a rating says about its user: x (k) and the number that <user,x> should be. The item's own
 * bias is none of x. */
static double mf_equation(const struct recsys_fit *fit, const struct recsys_rating *rating,
                          double *x)
{
    const struct mf *m = fit->own;
    const float *q = recsys_at(fit, ITEMS, rating->item);

    for (int f = 0; f < m->k; f++)
        x[f] = f == m->k - 2 ? 0 : (double)q[f];
    return ((double)rating->value - (double)fit->mean) / (double)m->cells.unit -
           (double)q[m->k - 2];
}

/* The least squares of a new user's row, with the penalty that its ratings would have had: the
 * factor of the equations' matrix a (k,k), and their right side b (k). */
static base_status mf_equations(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                                uint32_t count, double *a, double *b)
{
    const struct mf *m = fit->own;
    const int k = m->k;
    double x[RECSYS_MAX_K];

    for (uint32_t j = 0; j < count; j++) {
        const double y = mf_equation(fit, &ratings[j], x);

        recsys_add_equation(a, b, k, x, 1, y);
    }
    for (int f = 0; f < k; f++)
        a[f * k + f] += 1e-3 + count * (f == k - 1 ? m->bias_lambda : m->lambda);
    return recsys_cholesky(a, k) ? BASE_OK
                                 : base_fail(BASE_ERR_DIVERGED, "the items' rows are not numbers");
}

static base_status mf_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                           uint32_t count, float *row)
{
    base_status st = BASE_OK;
    const int k = ((const struct mf *)fit->own)->k;
    double *a = base_calloc((size_t)k * (size_t)k, sizeof *a), b[RECSYS_MAX_K] = {0};

    TRY(mf_equations(fit, ratings, count, a, b));
    recsys_solve(a, k, b);
    for (int f = 0; f < k; f++)
        row[f] = f == k - 2 ? 1 : (float)b[f];
out:
    base_free(a);
    return st;
}

/* The guess is <x, A⁻¹ Σ y_j x_j>: each rating's term of it. */
static base_status mf_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                              uint32_t count, uint32_t item, float *parts, float *rest_p)
{
    base_status st = BASE_OK;
    const struct mf *m = fit->own;
    const int k = m->k;
    double *a = base_calloc((size_t)k * (size_t)k, sizeof *a), z[RECSYS_MAX_K] = {0};

    TRY(mf_equations(fit, ratings, count, a, z));
    mf_equation(fit, &(struct recsys_rating){.item = item}, z);
    recsys_solve(a, k, z);
    for (uint32_t j = 0; j < count; j++) {
        double x[RECSYS_MAX_K];
        const double y = mf_equation(fit, &ratings[j], x);

        parts[j] = (float)((double)m->cells.unit * y * recsys_product(x, z, k));
    }
    *rest_p = mf_guess(fit, NULL, item, 0).value;
out:
    base_free(a);
    return st;
}

/* clang-format off */
static const char *const losses[] = {"squared", "absolute", NULL};
#define AT(field) offsetof(struct mf_options, field)
static const struct base_option options[] = {
    {.name = "k", .argument = "N", .kind = BASE_INT, .min = 8, .max = RECSYS_MAX_K,
     .offset = AT(k), .help = "floats of a row, two of them for biases; a multiple of 8"},
    {.name = "sweeps", .argument = "N", .kind = BASE_INT, .min = 1, .max = 10000,
     .offset = AT(sweeps), .help = "epochs"},
    {.name = "loss", .kind = BASE_ENUM, .names = losses, .argument = "WHAT", .offset = AT(loss),
     .help = "what is minimised"},
    {.name = "rate", .argument = "X", .kind = BASE_REAL, .min = 1e-6, .max = 1, .offset = AT(rate),
     .help = "learning rate at first"},
    {.name = "last-rate", .argument = "X", .kind = BASE_REAL, .min = 1e-6, .max = 1,
     .offset = AT(last_rate), .help = "what is left of it in the last epoch"},
    {.name = "lambda", .argument = "X", .kind = BASE_REAL, .min = 0, .max = 10,
     .offset = AT(lambda), .help = "L2 of factors, for each rating; 0: by the number of ratings"},
    {.name = "bias-lambda", .argument = "X", .kind = BASE_REAL, .min = 0, .max = 10,
     .offset = AT(bias_lambda), .help = "L2 of biases; 0: a quarter of lambda"},
    {.name = "blocks", .argument = "N", .kind = BASE_INT, .min = 0, .max = 64,
     .offset = AT(blocks), .help = "stripes of users and groups of items; 0: by the items"},
    {.name = "rotations", .argument = "N", .kind = BASE_INT, .min = 1, .max = 64,
     .offset = AT(rotations), .help = "times that items go round in an epoch"},
    {0}};
/* clang-format on */

extern const struct recsys_model recsys_model_mf;
const struct recsys_model recsys_model_mf = {
    .name = "mf",
    .help = "biased matrix factorisation by stochastic gradient descent: the fastest",
    .options = options,
    .options_size = sizeof(struct mf_options),
    .defaults =
        &(const struct mf_options){
            .k = 32, .sweeps = 30, .rotations = 4, .rate = 0.05, .last_rate = 0.05},
    .examples = (const char *const[]){"k=16,sweeps=5", "k=24,sweeps=3,loss=absolute,rate=0.02",
                                      "k=32,sweeps=3,blocks=2,rotations=1", NULL},
    .own_size = sizeof(struct mf),
    .open = mf_open,
    .reopen = mf_reopen,
    .close = mf_close,
    .start = mf_start,
    .prepare = mf_prepare,
    .run = mf_run,
    .rotation = &(const struct recsys_rotation){.users = USERS,
                                                .lay_out = mf_lay_out,
                                                .bytes = mf_bytes,
                                                .count = mf_rotations,
                                                .floats = mf_floats,
                                                .begin = mf_begin,
                                                .train = mf_train,
                                                .end = mf_end},
    .guess = mf_guess,
    .scores = mf_scores,
    .fold = mf_fold,
    .explain = mf_explain,
};
