/* SPDX-License-Identifier: MIT
 *
 * The same minimum as bias-als by gradient descent: every sweep is one step along the gradient of
 * all ratings, Σ (r - mean - b_u - b_i) - λ b, taken at the same biases for users and items. A
 * row's step is divided by its curvature, count + λ: with one rate for all, the most rated item
 * alone would dictate it. Users and items share every rating, so a rate above 1 diverges and ½ is
 * best.
 */
#include "recsys/bias.h"

#include <string.h>

#include "recsys/model_private.h"

enum { USERS, ITEMS };                                   /* phases */
enum { NEXT_USERS = RECSYS_BIAS_ITEMS + 1, NEXT_ITEMS }; /* buffers */

static base_status bias_gd_open(struct recsys_fit *fit)
{
    recsys_bias_open(fit);
    recsys_add_rows(fit, "next_user_bias", RECSYS_OF_USERS, 1);
    recsys_add_rows(fit, "next_item_bias", RECSYS_OF_ITEMS, 1);
    fit->buffers[NEXT_USERS].passing = fit->buffers[NEXT_ITEMS].passing = true;
    recsys_add_phase(fit, "users", fit->users, fit->by_user->start, NEXT_USERS);
    recsys_add_phase(fit, "items", fit->items, fit->by_item->start, NEXT_ITEMS);
    return BASE_OK;
}

struct stepping {
    const struct recsys_fit *fit;
    const struct recsys_rows *rows;
    const float *mine, *other;
    double damping, rate;
    float *next;
};

static void bias_gd_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct stepping *s = context;

    (void)thread;
    for (uint32_t r = from; r < to; r++) {
        const double curvature = (double)recsys_row_count(s->rows, r) + s->damping;
        const double gradient =
            recsys_bias_rest(s->fit, s->rows, r, s->other) - curvature * (double)s->mine[r];

        s->next[r] =
            curvature > 0 ? (float)((double)s->mine[r] + s->rate * gradient / curvature) : 0;
    }
}

static void bias_gd_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to)
{
    const struct recsys_bias_options *o = fit->options;
    const bool users = phase == USERS;
    const struct recsys_rows *rows = users ? fit->by_user : fit->by_item;
    const struct stepping s = {
        .fit = fit,
        .rows = rows,
        .mine = fit->buffers[users ? RECSYS_BIAS_USERS : RECSYS_BIAS_ITEMS].at,
        .other = fit->buffers[users ? RECSYS_BIAS_ITEMS : RECSYS_BIAS_USERS].at,
        .damping = users ? o->user_damping : o->item_damping,
        .rate = o->rate,
        .next = fit->buffers[users ? NEXT_USERS : NEXT_ITEMS].at,
    };

    recsys_each_range(fit->team, rows->start, from, to, bias_gd_range, &s);
}

static base_status bias_gd_finish(struct recsys_fit *fit)
{
    memcpy(fit->buffers[RECSYS_BIAS_USERS].at, fit->buffers[NEXT_USERS].at,
           fit->users * sizeof(float));
    memcpy(fit->buffers[RECSYS_BIAS_ITEMS].at, fit->buffers[NEXT_ITEMS].at,
           fit->items * sizeof(float));
    return BASE_OK;
}

/* clang-format off */
static const struct base_option options[] = {
    {.table = recsys_bias_dampings},
    {.name = "rate", .argument = "X", .kind = BASE_REAL, .min = 1e-6, .max = 1,
     .offset = offsetof(struct recsys_bias_options, rate),
     .help = "share of a row's own minimum that a step goes"},
    {.name = "sweeps", .argument = "N", .kind = BASE_INT, .min = 1, .max = 100000,
     .offset = offsetof(struct recsys_bias_options, sweeps), .help = "gradient steps"},
    {0}};
/* clang-format on */

extern const struct recsys_model recsys_model_bias_gd;
const struct recsys_model recsys_model_bias_gd = {
    .name = "bias-gd",
    .help = "biases of users and items by full gradient steps",
    .by_item = true,
    .options = options,
    .options_size = sizeof(struct recsys_bias_options),
    .defaults = &(const struct recsys_bias_options){5, 3, 60, 0.5},
    .examples = (const char *const[]){"", "rate=0.3,sweeps=10", NULL},
    .open = bias_gd_open,
    .reopen = recsys_bias_reopen,
    .start = recsys_bias_start,
    .run = bias_gd_run,
    .finish = bias_gd_finish,
    .guess = recsys_bias_guess,
    .scores = recsys_bias_scores,
    .fold = recsys_bias_fold,
    .explain = recsys_bias_explain,
};
