/* SPDX-License-Identifier: MIT
 *
 * Sides, buffers, phases and memory of a Bayesian factorisation, and its sizes where the options
 * leave them open.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/bias.h"
#include "recsys/gibbs.h"
#include "recsys/model_private.h"

static base_status allocate(struct gibbs *g, size_t count, size_t size, const char *what,
                            void *memory_pp)
{
    const base_status st = base_tensor(count, size, what, memory_pp);

    if (st == BASE_OK)
        g->memory[g->memory_count++] = *(void **)memory_pp;
    g->memory_bytes += count * size;
    return st;
}

/* ---- sizes ---- */

enum { SMALL = 300000, MEDIUM = 3000000 }; /* ratings */
static const size_t KEPT_BYTES = 512u << 20;
enum { MOST_KEPT = 64 };

/* More factors pay from a million ratings on. Implicit priors take some 150 sweeps to settle; after
 * that, large sets have narrow posteriors and need fewer samples. */
static void choose_sizes(struct recsys_fit *fit)
{
    const struct gibbs_options *o = fit->options;
    const uint64_t n = fit->by_user->count;
    struct gibbs *g = gibbs_of(fit);
    size_t sample;

    g->k = (int)(o->k > 0 ? o->k : n < SMALL ? 32 : 64);
    fit->sweeps = o->sweeps > 0 ? o->sweeps : n < MEDIUM ? 400 : 250;
    g->burn = o->burn > 0 ? o->burn : fit->sweeps * 2 / 5;
    if (g->burn >= fit->sweeps)
        g->burn = fit->sweeps - 1;
    sample = ((size_t)fit->users + 2 * (size_t)fit->items) * (size_t)g->k * sizeof(float);
    g->keep = (int)(o->keep > 0 ? o->keep : (int64_t)(KEPT_BYTES / sample));
    if (g->keep > MOST_KEPT && o->keep == 0)
        g->keep = MOST_KEPT;
    if (g->keep > fit->sweeps - g->burn)
        g->keep = (int)(fit->sweeps - g->burn);
    if (g->keep < 1)
        g->keep = 1;
    g->thin = (int)((fit->sweeps - g->burn) / g->keep);
    fit->settling = g->burn;
    /* A chain that has settled once is soon at home with some more ratings. */
    fit->again.from = g->burn > fit->sweeps / 20 ? g->burn - fit->sweeps / 20 : 0;
    fit->again.to = g->burn + (fit->sweeps - g->burn + 1) / 2;
    fit->reason = o->k > 0    ? "as the options say"
                  : n < SMALL ? "few ratings: 32 factors are enough"
                              : "many ratings: 64 factors";
}

/* ---- sides ---- */

static const struct gibbs_names names[GIBBS_SIDES] = {
    {"users", "user_errors", "user_sites", "user_effects", "kept_users"},
    {"items", "item_errors", "item_sites", "item_effects", "kept_items"},
    {"times", "time_errors", NULL, NULL, "kept_times"},
};

static void user_and_item_sides(struct recsys_fit *fit)
{
    struct gibbs *g = gibbs_of(fit);
    const int k = g->k;

    for (int i = 0; i < 2; i++) {
        const struct recsys_rows *rows = i == GIBBS_USERS ? fit->by_user : fit->by_item;

        g->side[i] = (struct gibbs_side){
            .names = &names[i],
            .count = rows->rows,
            .start = rows->start,
            .column = rows->column,
            .rows = rows,
            .first = 1 - i,
            .second = g->sides > GIBBS_TIMES ? GIBBS_TIMES : -1,
            .own = i == GIBBS_USERS ? k - 2 : k - 1,
            .fixed = i == GIBBS_USERS ? k - 1 : k - 2,
        };
    }
}

uint32_t gibbs_bin(const struct gibbs *g, uint32_t time)
{
    const uint32_t day = recsys_day(time), last = g->side[GIBBS_TIMES].count - 1;
    const double bin = day < g->first_day ? 0 : (day - g->first_day) / g->days;

    return bin < last ? (uint32_t)bin : last;
}

/* The bins of ratings, and the ratings of each bin. */
static base_status time_side(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    struct gibbs *g = gibbs_of(fit);
    struct gibbs_side *s = &g->side[GIBBS_TIMES];
    const struct recsys_rows *users = fit->by_user, *items = fit->by_item;
    uint32_t last_day = 0;

    if (users->time == NULL || items->time == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "model bmf: time=%g needs ratings with times", g->days));
    if (users->count > UINT32_MAX)
        TRY(base_fail(BASE_ERR_USAGE, "model bmf: time serves up to 4294967295 ratings"));
    g->first_day = UINT32_MAX;
    for (uint64_t e = 0; e < users->count; e++) {
        const uint32_t day = recsys_day(users->time[e]);

        g->first_day = day < g->first_day ? day : g->first_day;
        last_day = day > last_day ? day : last_day;
    }
    *s = (struct gibbs_side){.names = &names[GIBBS_TIMES],
                             .count = (uint32_t)((last_day - g->first_day) / g->days) + 1,
                             .rows = users,
                             .first = GIBBS_USERS,
                             .second = GIBBS_ITEMS,
                             .own = g->k - 1,
                             .fixed = g->k - 2};
    TRY(allocate(g, users->count, 4, "time bins", &g->bins[0]));
    TRY(allocate(g, users->count, 4, "time bins", &g->bins[1]));
    TRY(allocate(g, s->count + 2, 8, "time bins", &g->bin_start));
    TRY(allocate(g, users->count, 4, "ratings by time", &g->bin_user));
    TRY(allocate(g, users->count, 4, "ratings by time", &g->bin_item));
    TRY(allocate(g, users->count, 4, "ratings by time", &g->bin_place));
    for (uint64_t e = 0; e < users->count; e++) {
        g->bins[0][e] = gibbs_bin(g, users->time[e]);
        g->bins[1][e] = gibbs_bin(g, items->time[e]);
        g->bin_start[g->bins[0][e] + 2]++;
    }
    for (uint32_t b = 0; b < s->count; b++)
        g->bin_start[b + 2] += g->bin_start[b + 1];
    for (uint32_t u = 0; u < users->rows; u++)
        for (uint64_t e = users->start[u]; e < users->start[u + 1]; e++) {
            const uint64_t at = g->bin_start[g->bins[0][e] + 1]++;

            g->bin_user[at] = u;
            g->bin_item[at] = users->column[e];
            g->bin_place[at] = (uint32_t)e;
        }
    s->start = g->bin_start;
    s->column = g->bin_user;
    s->second_column = g->bin_item;
    s->place = g->bin_place;
    g->side[GIBBS_USERS].second_column = g->bins[0];
    g->side[GIBBS_ITEMS].second_column = g->bins[1];
out:
    return st;
}

/* Latents are kept in the order of users; items find theirs by place. */
static base_status latents(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    struct gibbs *g = gibbs_of(fit);
    const struct recsys_rows *users = fit->by_user;
    uint64_t *next = NULL;

    if (fit->scale->levels < 2 || fit->scale->levels > GIBBS_MAX_LEVELS || users->code == NULL)
        TRY(base_fail(BASE_ERR_USAGE,
                      "model bmf: likelihood=ordinal is for scales of 2 to %d levels",
                      GIBBS_MAX_LEVELS));
    if (users->count > UINT32_MAX)
        TRY(base_fail(BASE_ERR_USAGE, "model bmf: likelihood=ordinal serves up to 4294967295 "
                                      "ratings"));
    TRY(allocate(g, users->count, sizeof(float), "latents", &g->latent));
    TRY(allocate(g, users->count, 4, "places of latents", &g->item_place));
    TRY(base_tensor(fit->items, sizeof *next, "places of latents", &next));
    for (uint64_t e = 0; e < users->count; e++) /* users rise within an item, as they do here */
        g->item_place[fit->by_item->start[users->column[e]] + next[users->column[e]]++] =
            (uint32_t)e;
    g->side[GIBBS_ITEMS].place = g->item_place;
out:
    base_free(next);
    return st;
}

/* ---- buffers ---- */

static const enum recsys_axis axes[GIBBS_SIDES] = {RECSYS_OF_USERS, RECSYS_OF_ITEMS,
                                                   RECSYS_NEITHER};

/* A buffer with a row for each row of a side. */
static int add_side(struct recsys_fit *fit, int side, const char *name, uint32_t width)
{
    return side < GIBBS_TIMES
               ? recsys_add_rows(fit, name, axes[side], width)
               : recsys_add_buffer(fit, name, gibbs_of(fit)->side[side].count, width);
}

static base_status side_memory(struct recsys_fit *fit, int i, bool effects)
{
    base_status st = BASE_OK;
    struct gibbs *g = gibbs_of(fit);
    struct gibbs_side *s = &g->side[i];
    const size_t k = (size_t)g->k, sites = g->side[s->first].count;

    s->factors = add_side(fit, i, s->names->factors, (uint32_t)k);
    s->errors = add_side(fit, i, s->names->errors, 1);
    fit->buffers[s->errors].passing = true;
    s->sites = s->effects = -1;
    TRY(allocate(g, k, sizeof(double), "a prior", &s->mu));
    TRY(allocate(g, k * k, sizeof(double), "a prior", &s->lambda));
    TRY(allocate(g, k * k, sizeof(float), "a prior", &s->prior));
    TRY(allocate(g, k, sizeof(float), "a prior", &s->prior_mean));
    if (!effects)
        goto out;
    s->sites = recsys_add_slices(fit, s->names->sites, axes[s->first], (uint32_t)(k / 8));
    s->effects = recsys_add_slices(fit, s->names->effects, axes[i], (uint32_t)(k / 8));
    TRY(allocate(g, s->count, sizeof(float), "shares of rows", &s->share));
    TRY(allocate(g, sites * k, sizeof(float), "noise of effects", &s->noise));
    TRY(allocate(g, s->count * k, sizeof(float), "effects", &s->rest));
    for (uint32_t r = 0; r < s->count; r++)
        s->share[r] = 1 / sqrtf(fmaxf(1, (float)(s->start[r + 1] - s->start[r])));
out:
    return st;
}

static void kept_buffers(struct recsys_fit *fit, bool effects)
{
    struct gibbs *g = gibbs_of(fit);
    const uint32_t floats = (uint32_t)(g->keep * g->k);

    for (int i = 0; i < g->sides; i++)
        g->kept[i] = add_side(fit, i, g->side[i].names->kept, floats + (i == GIBBS_USERS ? 8 : 0));
    fit->answers = g->kept[GIBBS_USERS];
    fit->traits = (struct recsys_traits){g->kept[GIBBS_ITEMS], (uint32_t)(g->keep * g->k),
                                         (uint32_t)g->k, (uint32_t)g->k - 2};
    g->kept_sites = effects ? recsys_add_rows(fit, "kept_sites", RECSYS_OF_ITEMS, floats) : -1;
    g->kept_prior =
        recsys_add_buffer(fit, "kept_prior", (uint32_t)g->keep, (uint32_t)GIBBS_PRIOR(g->k));
    g->unknown = recsys_add_buffer(fit, "unknown", GIBBS_SIDES, floats + 8);
    for (int i = fit->answers; i < fit->buffer_count; i++)
        fit->buffers[i].late = true;
}

static base_status scratch_memory(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    struct gibbs *g = gibbs_of(fit);
    const size_t k = (size_t)g->k, threads = (size_t)base_team_threads(fit->team);
    const size_t sizes[] = {RECSYS_LANES * recsys_triangle_floats(g->k),
                            recsys_lower_floats(g->k),
                            (size_t)recsys_panel(g->k) * k,
                            RECSYS_LANES * k,
                            RECSYS_LANES * k,
                            RECSYS_LANES * k};
    size_t floats = 0;
    float *at;

    for (int i = 0; i < 6; i++)
        floats += (sizes[i] + 15) / 16 * 16;
    TRY(allocate(g, threads, sizeof *g->scratch, "scratch", &g->scratch));
    TRY(allocate(g, threads * floats, sizeof(float), "scratch", &at));
    for (size_t t = 0; t < threads; t++) {
        float **part[] = {&g->scratch[t].triangles, &g->scratch[t].lower, &g->scratch[t].panel,
                          &g->scratch[t].x,         &g->scratch[t].noise, &g->scratch[t].sums};

        for (int i = 0; i < 6; i++) {
            *part[i] = at;
            at += (sizes[i] + 15) / 16 * 16;
        }
    }
    TRY(allocate(g, recsys_lower_floats(g->k), sizeof(float), "scratch", &g->site_lower));
out:
    return st;
}

static void add_phases(struct recsys_fit *fit)
{
    struct gibbs *g = gibbs_of(fit);

    for (int i = 0; i < g->sides; i++) {
        struct gibbs_side *s = &g->side[i];
        struct recsys_phase *phase;

        s->phase = recsys_add_phase(fit, s->names->factors, s->count, s->start, s->factors);
        phase = &fit->phases[s->phase];
        phase->writes[phase->write_count++] = s->errors;
        if (i == GIBBS_USERS && g->user_noise >= 0)
            phase->writes[phase->write_count++] = g->user_noise;
        s->effect_phase = -1;
        if (s->effects < 0)
            continue;
        s->effect_phase =
            recsys_add_phase(fit, s->names->effects, (uint32_t)(g->k / 8), NULL, s->sites);
        phase = &fit->phases[s->effect_phase];
        phase->writes[phase->write_count++] = s->effects;
    }
}

base_status gibbs_open(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    const struct gibbs_options *o = fit->options;
    const bool effects = o->side == GIBBS_IMPLICIT;
    struct gibbs *g = gibbs_of(fit);

    choose_sizes(fit);
    if (g->k % 8 != 0 || g->k < 8)
        TRY(base_fail(BASE_ERR_USAGE, "model bmf: k is a multiple of 8, not %d", g->k));
    if (o->time > 0 && o->time < 1)
        TRY(base_fail(BASE_ERR_USAGE, "model bmf: time is 0 or at least 1 day, not %g", o->time));
    g->days = o->time;
    g->ordinal = o->likelihood == GIBBS_ORDINAL;
    g->sides = o->time > 0 ? GIBBS_SIDES : GIBBS_TIMES;
    user_and_item_sides(fit);
    if (o->time > 0)
        TRY(time_side(fit));
    if (g->ordinal)
        TRY(latents(fit));
    for (int i = 0; i < g->sides; i++)
        TRY(side_memory(fit, i, effects && i != GIBBS_TIMES));
    g->state = recsys_add_buffer(fit, "state", 1, GIBBS_STATE);
    g->user_noise = -1;
    if (o->noise && !g->ordinal) /* latents have unit noise: cut points say how wide it is */
        g->user_noise = recsys_add_rows(fit, "user_noise", RECSYS_OF_USERS, 1);
    kept_buffers(fit, effects);
    TRY(scratch_memory(fit));
    add_phases(fit);
    fit->facts[GIBBS_FACT_K] = g->k;
    fit->facts[GIBBS_FACT_KEEP] = g->keep;
    fit->facts[GIBBS_FACT_FIRST_DAY] = g->first_day;
    fit->facts[GIBBS_FACT_BINS] = g->side[GIBBS_TIMES].count;
    fit->fact_count = GIBBS_FACTS;
    fit->extra = g->memory_bytes;
out:
    return st;
}

static bool is_fact(const struct recsys_fit *fit, int fact, double least, double most)
{
    const double value = fit->facts[fact];

    return value >= least && value <= most && value == floor(value);
}

base_status gibbs_reopen(struct recsys_fit *fit)
{
    const struct gibbs_options *o = fit->options;
    struct gibbs *g = gibbs_of(fit);

    if (fit->fact_count != GIBBS_FACTS || !is_fact(fit, GIBBS_FACT_K, 8, RECSYS_MAX_K) ||
        !is_fact(fit, GIBBS_FACT_KEEP, 1, 1000) ||
        !is_fact(fit, GIBBS_FACT_FIRST_DAY, 0, UINT32_MAX) ||
        !is_fact(fit, GIBBS_FACT_BINS, o->time > 0, UINT32_MAX) ||
        (int)fit->facts[GIBBS_FACT_K] % 8 != 0)
        return base_fail(BASE_ERR_DATA,
                         "the facts of a model bmf are its k, samples, first day and time bins");
    if (o->likelihood == GIBBS_ORDINAL &&
        (fit->scale->levels < 2 || fit->scale->levels > GIBBS_MAX_LEVELS))
        return base_fail(BASE_ERR_DATA, "an ordinal model of %u levels", fit->scale->levels);
    g->k = (int)fit->facts[GIBBS_FACT_K];
    g->keep = (int)fit->facts[GIBBS_FACT_KEEP];
    g->first_day = (uint32_t)fit->facts[GIBBS_FACT_FIRST_DAY];
    g->days = o->time;
    g->ordinal = o->likelihood == GIBBS_ORDINAL;
    g->sides = o->time > 0 ? GIBBS_SIDES : GIBBS_TIMES;
    g->side[GIBBS_USERS] = (struct gibbs_side){.names = &names[GIBBS_USERS], .count = fit->users};
    g->side[GIBBS_ITEMS] = (struct gibbs_side){.names = &names[GIBBS_ITEMS], .count = fit->items};
    g->side[GIBBS_TIMES] = (struct gibbs_side){.names = &names[GIBBS_TIMES],
                                               .count = (uint32_t)fit->facts[GIBBS_FACT_BINS]};
    g->state = recsys_add_buffer(fit, "state", 1, GIBBS_STATE);
    g->user_noise = -1;
    kept_buffers(fit, o->side == GIBBS_IMPLICIT);
    return BASE_OK;
}

void gibbs_close(struct recsys_fit *fit)
{
    struct gibbs *g = gibbs_of(fit);

    for (int i = 0; i < g->memory_count; i++)
        base_free(g->memory[i]);
}

/* ---- starting values ---- */

base_status gibbs_start(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    const struct gibbs_options *o = fit->options;
    struct gibbs *g = gibbs_of(fit);
    float *state = recsys_at(fit, g->state, 0), z[RECSYS_MAX_K + 16];

    for (int i = 0; i < g->sides; i++) {
        const struct gibbs_side *s = &g->side[i];

        for (uint32_t r = 0; r < s->count; r++) {
            float *row = recsys_at(fit, s->factors, r);

            recsys_row_normals(fit->seed, GIBBS_DRAW_START + (uint32_t)i, 0, r, g->k, z);
            for (int f = 0; f < g->k - 2; f++)
                row[f] = 0.1f * z[f];
            row[s->own] = 0;
            row[s->fixed] = i != GIBBS_TIMES;
        }
    }
    for (uint32_t u = 0; u < (g->user_noise >= 0 ? fit->users : 0); u++)
        *recsys_at(fit, g->user_noise, u) = 1;
    state[GIBBS_ALPHA] = g->ordinal ? 1 : 2;
    state[GIBBS_SPREAD] = state[GIBBS_SPREAD + 1] = (float)o->spread;
    if (g->ordinal)
        TRY(gibbs_cuts_start(fit));
    gibbs_keep(fit); /* so that guesses are possible from the beginning */
    state[GIBBS_KEPT] = 0;
out:
    return st;
}

/* ---- more ratings ---- */

/* Sums of the sites over what each row has rated by now. */
static void sum_effects(struct recsys_fit *fit, const struct gibbs_side *s)
{
    const size_t slices = (size_t)gibbs_of(fit)->k / 8;

    for (size_t slice = 0; slice < slices; slice++) {
        const float *sites = recsys_at(fit, s->sites, slice);
        float *effects = recsys_at(fit, s->effects, slice);

        memset(effects, 0, (size_t)s->count * 8 * sizeof *effects);
        for (uint32_t r = 0; r < s->count; r++)
            for (uint64_t e = s->start[r]; e < s->start[r + 1]; e++)
                for (size_t f = 0; f < 8; f++)
                    effects[8 * (size_t)r + f] += s->share[r] * sites[8 * (size_t)s->column[e] + f];
    }
}

void gibbs_grown(struct recsys_fit *fit)
{
    struct gibbs *g = gibbs_of(fit);

    for (int i = 0; i < g->sides; i++)
        if (g->side[i].effects >= 0)
            sum_effects(fit, &g->side[i]);
    recsys_at(fit, g->state, 0)[GIBBS_KEPT] = 0; /* samples are of the ratings as they were */
}
