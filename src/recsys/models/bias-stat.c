/* SPDX-License-Identifier: MIT
 *
 * Damped means: an item's mean deviation from the mean of all ratings, then a user's mean deviation
 * from what mean and items explain. One pass over the ratings for each.
 */
#include "recsys/bias.h"
#include "recsys/model_private.h"

enum { ITEMS, USERS }; /* phases */

static base_status bias_stat_open(struct recsys_fit *fit)
{
    recsys_bias_open(fit);
    recsys_add_phase(fit, "items", fit->items, fit->by_item->start, RECSYS_BIAS_ITEMS);
    recsys_add_phase(fit, "users", fit->users, fit->by_user->start, RECSYS_BIAS_USERS);
    return BASE_OK;
}

static void bias_stat_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to)
{
    const struct recsys_bias_options *o = fit->options;
    float *users = fit->buffers[RECSYS_BIAS_USERS].at, *items = fit->buffers[RECSYS_BIAS_ITEMS].at;

    if (phase == ITEMS)
        recsys_bias_solve(fit, fit->by_item, NULL, o->item_damping, items, from, to);
    else
        recsys_bias_solve(fit, fit->by_user, items, o->user_damping, users, from, to);
}

static const struct base_option options[] = {{.table = recsys_bias_dampings}, {0}};

extern const struct recsys_model recsys_model_bias_stat;
const struct recsys_model recsys_model_bias_stat = {
    .name = "bias-stat",
    .help = "damped means of items and users, in one pass",
    .by_item = true,
    .options = options,
    .options_size = sizeof(struct recsys_bias_options),
    .defaults = &(const struct recsys_bias_options){5, 3, 1, 0},
    .examples = (const char *const[]){"", "user-damping=25,item-damping=10", NULL},
    .open = bias_stat_open,
    .reopen = recsys_bias_reopen,
    .start = recsys_bias_start,
    .run = bias_stat_run,
    .guess = recsys_bias_guess,
    .scores = recsys_bias_scores,
    .fold = recsys_bias_fold,
    .explain = recsys_bias_explain,
};
