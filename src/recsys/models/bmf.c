/* SPDX-License-Identifier: MIT
 *
 * Bayesian matrix factorisation by Gibbs sampling: recsys/gibbs.h has the model, gibbs_*.c its
 * parts. A sweep draws, for users, then items, then time bins: the prior, all rows, and the effects
 * of what was rated together; in the end the noise.
 */
#include "recsys/gibbs.h"
#include "recsys/model_private.h"

/* Which side a phase belongs to. */
static int bmf_side(const struct gibbs *g, int phase, bool *effects_p)
{
    for (int i = 0; i < g->sides; i++) {
        *effects_p = phase == g->side[i].effect_phase;
        if (*effects_p || phase == g->side[i].phase)
            return i;
    }
    return -1;
}

static base_status bmf_prepare(struct recsys_fit *fit, int phase)
{
    base_status st = BASE_OK;
    bool effects = false;
    const int side = bmf_side(gibbs_of(fit), phase, &effects);

    if (effects) {
        gibbs_effects_prepare(fit, side);
        return BASE_OK;
    }
    if (side == GIBBS_USERS && gibbs_of(fit)->ordinal)
        TRY(gibbs_latents(fit));
    TRY(gibbs_prior(fit, side));
out:
    return st;
}

static void bmf_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to)
{
    bool effects = false;
    const int side = bmf_side(gibbs_of(fit), phase, &effects);

    if (effects)
        gibbs_effects(fit, side, from, to);
    else
        gibbs_rows(fit, side, from, to);
}

/* The precision of all noise, from the errors that the last side's rows leave. */
static void bmf_alpha(struct recsys_fit *fit)
{
    const struct gibbs *g = gibbs_of(fit);
    const struct gibbs_side *last = &g->side[g->sides - 1];
    struct recsys_draws draws =
        recsys_draws_of(fit->seed, GIBBS_DRAW_NOISE + 8, (uint32_t)fit->sweep, 0);
    double sum = 0;

    for (uint32_t r = 0; r < last->count; r++)
        sum += (double)*recsys_at(fit, last->errors, r);
    recsys_at(fit, g->state, 0)[GIBBS_ALPHA] =
        (float)(recsys_draw_gamma(&draws, 1 + 0.5 * (double)fit->by_user->count) / (1 + 0.5 * sum));
}

static base_status bmf_finish(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    const struct gibbs *g = gibbs_of(fit);

    for (int i = 0; i < g->sides; i++)
        if (g->side[i].sites >= 0)
            TRY(gibbs_spread(fit, i));
    if (!g->ordinal)
        bmf_alpha(fit);
    gibbs_keep(fit);
out:
    return st;
}

/* clang-format off */
static const char *const sides[] = {"none", "implicit", NULL};
static const char *const likelihoods[] = {"normal", "ordinal", NULL};
#define AT(field) offsetof(struct gibbs_options, field)
static const struct base_option options[] = {
    {.name = "k", .argument = "N", .kind = BASE_INT, .min = 0, .max = RECSYS_MAX_K,
     .offset = AT(k), .help = "floats of a row, two of them biases; 0: 32, or 64 for many ratings"},
    {.name = "sweeps", .argument = "N", .kind = BASE_INT, .min = 0, .max = 100000,
     .offset = AT(sweeps), .help = "0: by the number of ratings"},
    {.name = "burn", .argument = "N", .kind = BASE_INT, .min = 0, .max = 100000,
     .offset = AT(burn), .help = "sweeps before the first sample counts; 0: two fifths"},
    {.name = "keep", .argument = "N", .kind = BASE_INT, .min = 0, .max = 1000,
     .offset = AT(keep), .help = "samples that answers are made of; 0: as many as fit 512 MB"},
    {.name = "side", .kind = BASE_ENUM, .names = sides, .argument = "WHAT", .offset = AT(side),
     .help = "what priors know: implicit, what a user rated and who rated an item"},
    {.name = "likelihood", .kind = BASE_ENUM, .names = likelihoods, .argument = "WHAT",
     .offset = AT(likelihood), .help = "ordinal: levels and cut points, for few levels"},
    {.name = "noise", .kind = BASE_FLAG, .offset = AT(noise), .help = "of its own for each user, of likelihood=normal"},
    {.name = "time", .argument = "DAYS", .kind = BASE_REAL, .min = 0, .max = 36500,
     .offset = AT(time), .help = "factors of periods of so many days, at least 1; 0: none"},
    {.name = "spread", .argument = "X", .kind = BASE_REAL, .min = 1e-3, .max = 1e3,
     .offset = AT(spread), .help = "starting precision of the effects of side=implicit"},
    {0}};
/* clang-format on */

extern const struct recsys_model recsys_model_bmf;
const struct recsys_model recsys_model_bmf = {
    .name = "bmf",
    .help = "Bayesian factorisation by Gibbs sampling: the most accurate, with uncertainties",
    .by_item = true,
    .times = true,
    .options = options,
    .options_size = sizeof(struct gibbs_options),
    .defaults = &(const struct gibbs_options){.side = GIBBS_IMPLICIT, .noise = true, .spread = 0.5},
    .examples =
        (const char *const[]){"k=16,sweeps=12,burn=4", "k=16,sweeps=8,side=none,noise=off",
                              "k=16,sweeps=8,likelihood=ordinal", "k=8,sweeps=8,time=30", NULL},
    .own_size = sizeof(struct gibbs),
    .sized_by = "k", /* GIBBS_FACT_K */
    .open = gibbs_open,
    .reopen = gibbs_reopen,
    .close = gibbs_close,
    .start = gibbs_start,
    .grown = gibbs_grown,
    .prepare = bmf_prepare,
    .run = bmf_run,
    .finish = bmf_finish,
    .guess = gibbs_guess,
    .scores = gibbs_scores,
    .fold = gibbs_fold,
    .explain = gibbs_explain,
};
