/* SPDX-License-Identifier: MIT
 *
 * Biases that minimise Σ (r - mean - b_u - b_i)² + λ_u Σ b_u² + λ_i Σ b_i²: alternating exact
 * solves of all items and all users. A dozen sweeps reach the minimum to six digits.
 */
#include "recsys/bias.h"
#include "recsys/model_private.h"

enum { ITEMS, USERS }; /* phases */

static base_status bias_als_open(struct recsys_fit *fit)
{
    recsys_bias_open(fit);
    recsys_add_phase(fit, "items", fit->items, fit->by_item->start, RECSYS_BIAS_ITEMS);
    recsys_add_phase(fit, "users", fit->users, fit->by_user->start, RECSYS_BIAS_USERS);
    return BASE_OK;
}

static void bias_als_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to)
{
    const struct recsys_bias_options *o = fit->options;
    float *users = fit->buffers[RECSYS_BIAS_USERS].at, *items = fit->buffers[RECSYS_BIAS_ITEMS].at;

    if (phase == ITEMS)
        recsys_bias_solve(fit, fit->by_item, users, o->item_damping, items, from, to);
    else
        recsys_bias_solve(fit, fit->by_user, items, o->user_damping, users, from, to);
}

/* clang-format off */
static const struct base_option options[] = {
    {.table = recsys_bias_dampings},
    {.name = "sweeps", .argument = "N", .kind = BASE_INT, .min = 1, .max = 10000,
     .offset = offsetof(struct recsys_bias_options, sweeps), .help = "solves of all rows"},
    {0}};
/* clang-format on */

extern const struct recsys_model recsys_model_bias_als;
const struct recsys_model recsys_model_bias_als = {
    .name = "bias-als",
    .help = "biases of users and items by alternating exact solves",
    .by_item = true,
    .options = options,
    .options_size = sizeof(struct recsys_bias_options),
    .defaults = &(const struct recsys_bias_options){5, 3, 12, 0},
    .examples = (const char *const[]){"", "sweeps=3,user-damping=0,item-damping=1", NULL},
    .open = bias_als_open,
    .reopen = recsys_bias_reopen,
    .start = recsys_bias_start,
    .run = bias_als_run,
    .guess = recsys_bias_guess,
    .scores = recsys_bias_scores,
    .fold = recsys_bias_fold,
    .explain = recsys_bias_explain,
};
