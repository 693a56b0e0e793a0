/* SPDX-License-Identifier: MIT
 *
 * Neural collaborative filtering (He et al., WWW 2017), with the product of factors added to what
 * the dense layers say rather than mixed with it:
 *
 *     r = mean + deviation (b_u + b_i + <p,q> + dense(b_u + b_i + <p,q>, p, q))
 *
 * p and q are SIZE floats of a user and an item. src/train trains it as a network (recsys_ncf_text,
 * nn/layers/embed.c); this file declares its tensors and answers with them. Arithmetic here is
 * float, one item at a time; the user's part of the first layer is computed once for all items.
 *
 * A new user's row minimises Σ (r - guess)² / deviation² + (1 + λ n) |row|² by Gauss-Newton steps
 * from zeros, the items' rows and all layers being as they are.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "recsys/gauss.h"
#include "recsys/model_private.h"
#include "recsys/ncf.h"

enum { MAX_DEPTH = 6, MAX_WIDTH = 1024, MAX_SIZE = 256, FOLD_STEPS = 8 };
static const double FOLD_LAMBDA = 0.02;

struct ncf_options {
    int64_t size;
    const char *layers;
    double dropout;
};

enum { USERS, ITEMS, LAYERS }; /* buffers: then weights and bias of each layer */
enum { DEVIATION, FACTS };

struct ncf {
    int size;
    int depth;                /* layers with weights; 0: there are none */
    int width[MAX_DEPTH + 1]; /* [l]: what layer l gets; the last gives 1 */
    char names[2 * MAX_DEPTH + 2][24];
};

/* ---- set-up ---- */

/* "64x32": hidden layers. */
static base_status ncf_parse_layers(const char *text, struct ncf *m)
{
    const char *at = text;

    m->depth = 0;
    if (strcmp(text, "none") == 0)
        return BASE_OK;
    for (;;) {
        char *end;
        const long width = strtol(at, &end, 10);

        if (end == at || width < 1 || width > MAX_WIDTH || m->depth == MAX_DEPTH - 1 ||
            (*end != '\0' && *end != 'x'))
            return base_fail(BASE_ERR_USAGE,
                             "model ncf: layers=%s is not up to %d widths from 1 to %d such as "
                             "64x32, or none",
                             text, MAX_DEPTH - 1, MAX_WIDTH);
        m->width[++m->depth] = (int)width;
        if (*end == '\0')
            break;
        at = end + 1;
    }
    m->depth++; /* the one that gives the output */
    return BASE_OK;
}

static base_status ncf_declare(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    const struct ncf_options *o = fit->options;
    struct ncf *m = fit->own;
    const uint32_t row = (uint32_t)o->size + 1;

    m->size = (int)o->size;
    TRY(ncf_parse_layers(o->layers, m));
    m->width[0] = 1 + 2 * m->size;
    recsys_add_buffer(fit, "pair.users", fit->users, row);
    recsys_add_buffer(fit, "pair.items", fit->items, row);
    for (int l = 0; l < m->depth; l++) {
        const int out = l + 1 < m->depth ? m->width[l + 1] : 1;

        snprintf(m->names[2 * l], sizeof m->names[0], "layers.%d.weight", l);
        snprintf(m->names[2 * l + 1], sizeof m->names[0], "layers.%d.bias", l);
        recsys_add_buffer(fit, m->names[2 * l], (uint32_t)out, (uint32_t)m->width[l]);
        recsys_add_buffer(fit, m->names[2 * l + 1], 1, (uint32_t)out);
    }
    fit->answers = USERS;
    fit->traits = (struct recsys_traits){ITEMS, row - 1, row - 1, row - 1};
out:
    return st;
}

static base_status ncf_reopen(struct recsys_fit *fit)
{
    if (fit->fact_count != FACTS || !(fit->facts[DEVIATION] > 0))
        return base_fail(BASE_ERR_DATA, "the fact of a model ncf is the ratings' deviation");
    return ncf_declare(fit);
}

void recsys_ncf_scale(struct recsys_fit *fit, double mean, double deviation)
{
    fit->mean = (float)mean;
    fit->facts[DEVIATION] = deviation;
}

static base_status ncf_open(struct recsys_fit *fit)
{
    fit->facts[DEVIATION] = 1;
    fit->fact_count = FACTS;
    return ncf_declare(fit);
}

char *recsys_ncf_text(const struct recsys_fit *fit)
{
    const struct ncf_options *o = fit->options;
    const struct ncf *m = fit->own;
    struct base_str text = {0};

    base_str_add(&text, "input 2x1x1\nembed %ux%u %d name=pair\n", fit->users, fit->items, m->size);
    if (m->depth > 0)
        base_str_add(&text, "save pair\n");
    for (int l = 0; l + 1 < m->depth; l++) {
        if (o->dropout > 0)
            base_str_add(&text, "dropout %g\n", o->dropout);
        base_str_add(&text, "dense %d name=layers.%d\nrelu\n", m->width[l + 1], l);
    }
    if (m->depth > 0)
        base_str_add(&text, "dense 1 name=layers.%d\nsave deep\nload pair\n", m->depth - 1);
    base_str_add(&text, "first 1\n%smse\n", m->depth > 0 ? "add deep\n" : "");
    return base_str_take(&text);
}

/* ---- the network, forwards and backwards ---- */

/* One user's pass: what is the same for all items, and the layers' outputs of one item. */
struct ncf_pass {
    const struct recsys_fit *fit;
    const float *user; /* NULL: unknown, zeros */
    float first[MAX_WIDTH];
    float out[MAX_DEPTH][MAX_WIDTH];
};

static float ncf_dot(int count, const float *a, const float *b)
{
    float sum = 0;

#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static const float *ncf_weights(const struct recsys_fit *fit, int layer, int output)
{
    return recsys_at(fit, LAYERS + 2 * layer, (size_t)output);
}

static float ncf_bias(const struct recsys_fit *fit, int layer, int output)
{
    return recsys_at(fit, LAYERS + 2 * layer + 1, 0)[output];
}

static int ncf_outputs(const struct ncf *m, int layer)
{
    return layer + 1 < m->depth ? m->width[layer + 1] : 1;
}

static void ncf_begin(struct ncf_pass *p, const struct recsys_fit *fit, const float *user)
{
    const struct ncf *m = fit->own;

    p->fit = fit;
    p->user = user;
    for (int o = 0; m->depth > 0 && o < ncf_outputs(m, 0); o++)
        p->first[o] = ncf_bias(fit, 0, o) +
                      (user != NULL ? ncf_dot(m->size, ncf_weights(fit, 0, o) + 1, user) : 0);
}

/* b_u + b_i + <p,q> */
static float ncf_wide(const struct ncf_pass *p, const float *item)
{
    const int size = ((const struct ncf *)p->fit->own)->size;

    return (p->user != NULL ? p->user[size] : 0) + (item != NULL ? item[size] : 0) +
           (p->user != NULL && item != NULL ? ncf_dot(size, p->user, item) : 0);
}

/* The output of a layer before its relu. */
static float ncf_sum(const struct ncf_pass *p, int layer, int o, float wide, const float *item)
{
    const struct ncf *m = p->fit->own;
    const float *w = ncf_weights(p->fit, layer, o);

    if (layer > 0)
        return ncf_bias(p->fit, layer, o) + ncf_dot(m->width[layer], w, p->out[layer - 1]);
    return p->first[o] + w[0] * wide + (item != NULL ? ncf_dot(m->size, w + 1 + m->size, item) : 0);
}

/* In units of the deviation, without the mean. */
static float ncf_output(struct ncf_pass *p, const float *item)
{
    const struct ncf *m = p->fit->own;
    const float wide = ncf_wide(p, item);
    float last = 0; /* value of the last layer, which has one; without layers there is none */

    for (int l = 0; l < m->depth; l++)
        for (int o = 0; o < ncf_outputs(m, l); o++) {
            const float sum = ncf_sum(p, l, o, wide, item);

            p->out[l][o] = last = l + 1 < m->depth && !(sum > 0) ? 0 : sum;
        }
    return wide + last;
}

/* After ncf_output: what the output changes by with each float of the user's row. slope (size+1)
 */
static void ncf_slope(const struct ncf_pass *p, const float *item, double *slope)
{
    const struct ncf *m = p->fit->own;
    double back[2][MAX_WIDTH], wide = 1;

    back[0][0] = 1; /* of the outputs of the layer under way */
    memset(slope, 0, ((size_t)m->size + 1) * sizeof *slope);
    for (int l = m->depth - 1, now = 0; l >= 0; l--, now = !now) {
        double *before = back[!now];

        memset(before, 0, sizeof back[0]);
        for (int o = 0; o < ncf_outputs(m, l); o++) {
            const float *w = ncf_weights(p->fit, l, o);
            const bool dead = l + 1 < m->depth && !(p->out[l][o] > 0);
            const double d = dead ? 0 : back[now][o];

            for (int i = 0; l > 0 && i < m->width[l]; i++)
                before[i] += d * (double)w[i];
            for (int f = 0; l == 0 && f < m->size; f++)
                slope[f] += d * (double)w[1 + f];
            wide += l == 0 ? d * (double)w[0] : 0;
        }
    }
    for (int f = 0; item != NULL && f < m->size; f++)
        slope[f] += wide * (double)item[f];
    slope[m->size] = wide;
}

static const float *ncf_item(const struct recsys_fit *fit, uint32_t item)
{
    return item != RECSYS_UNKNOWN ? recsys_at(fit, ITEMS, item) : NULL;
}

static float ncf_rating(const struct recsys_fit *fit, float output)
{
    return fit->mean + (float)fit->facts[DEVIATION] * output;
}

static struct recsys_guess ncf_guess(const struct recsys_fit *fit, const float *user, uint32_t item,
                                     uint32_t time)
{
    struct ncf_pass pass;

    (void)time;
    ncf_begin(&pass, fit, user);
    return (struct recsys_guess){ncf_rating(fit, ncf_output(&pass, ncf_item(fit, item))), NAN};
}

static void ncf_scores(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                       float *values)
{
    struct ncf_pass pass;

    ncf_begin(&pass, fit, user);
    for (uint32_t i = from; i < to; i++)
        values[i - from] = ncf_rating(fit, ncf_output(&pass, ncf_item(fit, i)));
}

/* ---- new users ---- */

/* What a rating says of the user's row, as if the network were linear around it: <x,row> should be
 * the number that is returned. */
static double ncf_equation(struct ncf_pass *pass, const struct recsys_rating *rating, double *x)
{
    const struct recsys_fit *fit = pass->fit;
    const struct ncf *m = fit->own;
    const float *item = ncf_item(fit, rating->item);
    double y = ((double)rating->value - (double)fit->mean) / fit->facts[DEVIATION] -
               (double)ncf_output(pass, item);

    ncf_slope(pass, item, x);
    for (int f = 0; f <= m->size; f++)
        y += x[f] * (double)pass->user[f];
    return y;
}

/* The factor of the equations' matrix a (k,k), and their right side b (k), around `row`. */
static base_status ncf_equations(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                                 uint32_t count, const float *row, double *a, double *b)
{
    const int k = ((const struct ncf *)fit->own)->size + 1;
    struct ncf_pass pass;
    double x[MAX_SIZE + 1];

    memset(a, 0, (size_t)k * (size_t)k * sizeof *a);
    memset(b, 0, (size_t)k * sizeof *b);
    ncf_begin(&pass, fit, row);
    for (uint32_t j = 0; j < count; j++) {
        const double y = ncf_equation(&pass, &ratings[j], x);

        recsys_add_equation(a, b, k, x, 1, y);
    }
    for (int f = 0; f < k; f++)
        a[f * k + f] += 1 + FOLD_LAMBDA * count;
    return recsys_cholesky(a, k) ? BASE_OK
                                 : base_fail(BASE_ERR_DIVERGED, "the model's rows are not numbers");
}

static base_status ncf_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                            uint32_t count, float *row)
{
    base_status st = BASE_OK;
    const int k = ((const struct ncf *)fit->own)->size + 1;
    double *a = base_calloc((size_t)k * (size_t)k, sizeof *a), b[MAX_SIZE + 1];

    memset(row, 0, (size_t)k * sizeof *row);
    for (int step = 0; step < FOLD_STEPS; step++) {
        TRY(ncf_equations(fit, ratings, count, row, a, b));
        recsys_solve(a, k, b);
        for (int f = 0; f < k; f++)
            row[f] = (float)b[f];
    }
out:
    base_free(a);
    return st;
}

/* Around the folded row the guess is <x, A⁻¹ Σ y_j x_j>, up to a constant: each rating's term. */
static base_status ncf_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                               uint32_t count, uint32_t item, float *parts, float *rest_p)
{
    base_status st = BASE_OK;
    const int k = ((const struct ncf *)fit->own)->size + 1;
    double *a = base_calloc((size_t)k * (size_t)k, sizeof *a), x[MAX_SIZE + 1], z[MAX_SIZE + 1];
    float row[MAX_SIZE + 1], sum = 0;
    struct ncf_pass pass;

    TRY(ncf_fold(fit, ratings, count, row));
    TRY(ncf_equations(fit, ratings, count, row, a, z));
    ncf_begin(&pass, fit, row);
    *rest_p = ncf_rating(fit, ncf_output(&pass, ncf_item(fit, item)));
    ncf_slope(&pass, ncf_item(fit, item), z);
    recsys_solve(a, k, z);
    for (uint32_t j = 0; j < count; j++) {
        const double y = ncf_equation(&pass, &ratings[j], x);

        parts[j] = (float)(fit->facts[DEVIATION] * y * recsys_product(x, z, k));
        sum += parts[j];
    }
    *rest_p -= sum;
out:
    base_free(a);
    return st;
}

/* clang-format off */
#define AT(field) offsetof(struct ncf_options, field)
static const struct base_option options[] = {
    {.name = "size", .argument = "N", .kind = BASE_INT, .min = 1, .max = MAX_SIZE,
     .offset = AT(size), .help = "factors of a user or an item"},
    {.name = "layers", .argument = "AxB…", .kind = BASE_TEXT, .offset = AT(layers),
     .help = "widths of the hidden layers, or none"},
    {.name = "dropout", .argument = "P", .kind = BASE_REAL, .max = 0.9, .offset = AT(dropout),
     .help = "share of what each hidden layer gets that is left out while training"},
    {0}};
/* clang-format on */

extern const struct recsys_model recsys_model_ncf;
const struct recsys_model recsys_model_ncf = {
    .name = "ncf",
    .help = "neural network over embeddings of users and items, trained by batches",
    .batches = true,
    .options = options,
    .options_size = sizeof(struct ncf_options),
    .defaults = &(const struct ncf_options){.size = 32, .layers = "16", .dropout = 0.5},
    .examples = (const char *const[]){"size=8,layers=16x8", "size=5,layers=none", NULL},
    .own_size = sizeof(struct ncf),
    .open = ncf_open,
    .reopen = ncf_reopen,
    .guess = ncf_guess,
    .scores = ncf_scores,
    .fold = ncf_fold,
    .explain = ncf_explain,
};
