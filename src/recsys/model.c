/* SPDX-License-Identifier: MIT
 *
 * A fit's life, and what is the same for every model: sweeps, guesses, scores.
 */
#include "recsys/model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "recsys/model_private.h"

/* ---- from text ---- */

base_status recsys_model_find(const char *text, const struct recsys_model **model_p,
                              void **options_p)
{
    base_status st = BASE_OK;
    const struct recsys_model *model = NULL;
    char *name = base_strndup(text, strcspn(text, ":"));

    *model_p = NULL;
    *options_p = NULL;
    TRY(base_registry_find("rating model", name, recsys_model_registry, recsys_model_count,
                           &model));
    TRY(base_options_parse(model->options, "model", name, model->defaults, model->options_size,
                           text, options_p));
    *model_p = model;
out:
    base_free(name);
    return st;
}

/* ---- buffers and phases ---- */

int recsys_add_buffer(struct recsys_fit *fit, const char *name, uint32_t rows, uint32_t width)
{
    assert(fit->buffer_count < RECSYS_MAX_BUFFERS);
    fit->buffers[fit->buffer_count] =
        (struct recsys_buffer){.name = name, .rows = rows, .width = width};
    return fit->buffer_count++;
}

static uint32_t count_of(const struct recsys_fit *fit, enum recsys_axis of)
{
    return of == RECSYS_OF_USERS ? fit->users : fit->items;
}

int recsys_add_rows(struct recsys_fit *fit, const char *name, enum recsys_axis of, uint32_t width)
{
    const int index = recsys_add_buffer(fit, name, count_of(fit, of), width);

    fit->buffers[index].of = of;
    return index;
}

int recsys_add_slices(struct recsys_fit *fit, const char *name, enum recsys_axis of, uint32_t rows)
{
    const int index = recsys_add_buffer(fit, name, rows, 8 * count_of(fit, of));

    fit->buffers[index].of = of;
    fit->buffers[index].across = true;
    return index;
}

int recsys_add_phase(struct recsys_fit *fit, const char *name, uint32_t rows, const uint64_t *work,
                     int writes)
{
    assert(fit->phase_count < RECSYS_MAX_PHASES);
    fit->phases[fit->phase_count] = (struct recsys_phase){
        .name = name, .rows = rows, .work = work, .writes = {writes}, .write_count = 1};
    return fit->phase_count++;
}

enum { LINE = 16 }; /* floats of a cache line: where a buffer begins */

base_status recsys_lay_out(struct recsys_fit *fit)
{
    base_status st = BASE_OK;

    fit->floats = 0;
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < fit->buffer_count; i++) {
            struct recsys_buffer *b = &fit->buffers[i];
            size_t floats;

            TRY(base_mul(b->rows, b->width, &floats));
            if (b->passing || b->late != (late == 1))
                continue;
            b->offset = fit->floats;
            TRY(base_add(fit->floats, (floats + LINE - 1) / LINE * LINE, &fit->floats));
        }
        if (late == 0)
            fit->early_floats = fit->floats;
    }
out:
    return st;
}

void recsys_fit_place(struct recsys_fit *fit, float *memory)
{
    for (int i = 0; i < fit->buffer_count; i++)
        if (!fit->buffers[i].passing)
            recsys_fit_place_rows(fit, i, 0, memory != NULL ? fit->buffers[i].rows : 0,
                                  memory != NULL ? memory + fit->buffers[i].offset : NULL);
}

void recsys_fit_place_rows(struct recsys_fit *fit, int buffer, uint32_t first, uint32_t held,
                           float *at)
{
    fit->buffers[buffer].at = at;
    fit->buffers[buffer].first = first;
    fit->buffers[buffer].held = held;
}

/* Passing buffers are the fit's own. */
static base_status allocate_passing(struct recsys_fit *fit)
{
    base_status st = BASE_OK;

    for (int i = 0; i < fit->buffer_count; i++) {
        struct recsys_buffer *b = &fit->buffers[i];

        if (!b->passing)
            continue;
        TRY(base_tensor((size_t)b->rows * b->width, sizeof(float), b->name, &b->at));
        fit->extra += (uint64_t)b->rows * b->width * sizeof(float);
    }
out:
    return st;
}

/* ---- a fit ---- */

struct tally {
    const struct recsys_rows *rows;
    struct recsys_units units;
    uint64_t *items;                                      /* (units, items) */
    uint64_t levels[RECSYS_MAX_UNITS][RECSYS_MAX_LEVELS]; /* where ratings have codes */
};

static void tally_unit(const void *context, int unit, int thread)
{
    struct tally *t = (struct tally *)(uintptr_t)context;
    const struct recsys_rows *rows = t->rows;
    uint64_t *items = t->items + (size_t)unit * rows->columns;
    const uint64_t to = rows->start[t->units.cut[unit + 1]];

    (void)thread;
    for (uint64_t k = rows->start[t->units.cut[unit]]; k < to; k++) {
        items[rows->column[k]]++;
        if (rows->code != NULL)
            t->levels[unit][rows->code[k]]++;
    }
}

static float mean_of(const struct recsys_scale *scale, const struct tally *t)
{
    double sum = 0;

    for (uint32_t l = 0; t->rows->code != NULL && l < scale->levels; l++) {
        uint64_t count = 0;

        for (int u = 0; u < t->units.count; u++)
            count += t->levels[u][l];
        sum += (double)count * (double)scale->level[l];
    }
    for (uint64_t k = 0; t->rows->value != NULL && k < t->rows->count; k++)
        sum += (double)t->rows->value[k];
    return (float)(sum / (double)t->rows->count);
}

/* The mean, and the ratings of each item. */
static base_status take_stock(struct recsys_fit *fit)
{
    base_status st = BASE_OK;
    struct tally *t = base_calloc(1, sizeof *t);

    t->rows = fit->by_user;
    t->units = recsys_units_of(t->rows);
    TRY(base_tensor((size_t)t->units.count * fit->items, sizeof *t->items, "counts of items",
                    &t->items));
    base_team_run(fit->team, t->units.count, tally_unit, t);
    fit->mean = mean_of(fit->scale, t);
    TRY(base_tensor(fit->items, sizeof *fit->item_counts, "counts of items", &fit->item_counts));
    for (int u = 0; u < t->units.count; u++)
        for (uint32_t i = 0; i < fit->items; i++)
            fit->item_counts[i] += t->items[(size_t)u * fit->items + i];
out:
    base_free(t->items);
    base_free(t);
    return st;
}

base_status recsys_fit_open(const struct recsys_setup *setup, struct recsys_fit **fit_p)
{
    base_status st = BASE_OK;
    struct recsys_fit *fit = base_calloc(1, sizeof *fit);

    *fit_p = NULL;
    *fit = (struct recsys_fit){.model = setup->model,
                               .options = setup->options,
                               .scale = setup->scale,
                               .by_user = setup->by_user,
                               .by_item = setup->by_item,
                               .seed = setup->seed,
                               .team = setup->team,
                               .users = setup->by_user->rows,
                               .items = setup->by_user->columns};
    if (setup->by_user->count == 0)
        TRY(base_fail(BASE_ERR_DATA, "there are no ratings to train on"));
    TRY(take_stock(fit));
    fit->own = base_calloc(1, fit->model->own_size + 1);
    TRY(fit->model->open(fit));
    if (fit->again.to == 0)
        fit->again = (struct recsys_again){fit->sweeps - (fit->sweeps + 3) / 4, fit->sweeps};
    TRY(recsys_lay_out(fit));
    TRY(allocate_passing(fit));
    *fit_p = fit;
    fit = NULL;
out:
    recsys_fit_free(fit);
    return st;
}

base_status recsys_fit_start(struct recsys_fit *fit)
{
    fit->sweep = 0;
    return fit->model->start(fit);
}

base_status recsys_fit_new(const struct recsys_setup *setup, struct recsys_fit **fit_p)
{
    base_status st = BASE_OK;
    struct recsys_fit *fit = NULL;

    *fit_p = NULL;
    TRY(recsys_fit_open(setup, &fit));
    if (setup->model->batches)
        TRY(base_fail(BASE_ERR_USAGE, "%s is trained by batches: paceline train --model %s",
                      setup->model->name, setup->model->name));
    TRY(base_tensor(fit->floats, sizeof(float), "a rating model", &fit->memory));
    recsys_fit_place(fit, fit->memory);
    TRY(recsys_fit_start(fit));
    *fit_p = fit;
    fit = NULL;
out:
    recsys_fit_free(fit);
    return st;
}

void recsys_fit_free(struct recsys_fit *fit)
{
    if (fit == NULL)
        return;
    if (fit->model->close != NULL && fit->own != NULL)
        fit->model->close(fit);
    for (int i = 0; i < fit->buffer_count; i++)
        if (fit->buffers[i].passing)
            base_free(fit->buffers[i].at);
    base_free(fit->memory);
    base_free(fit->item_counts);
    base_free(fit->own);
    base_free(fit);
}

base_status recsys_prepare(struct recsys_fit *fit, int phase)
{
    return fit->model->prepare != NULL ? fit->model->prepare(fit, phase) : BASE_OK;
}

void recsys_run(struct recsys_fit *fit, int phase, uint32_t from, uint32_t to)
{
    fit->model->run(fit, phase, from, to);
}

base_status recsys_finish(struct recsys_fit *fit)
{
    base_status st = BASE_OK;

    if (fit->model->finish != NULL)
        TRY(fit->model->finish(fit));
    fit->sweep++;
out:
    return st;
}

base_status recsys_sweep(struct recsys_fit *fit)
{
    base_status st = BASE_OK;

    for (int p = 0; p < fit->phase_count; p++) {
        TRY(recsys_prepare(fit, p));
        recsys_run(fit, p, 0, fit->phases[p].rows);
    }
    TRY(recsys_finish(fit));
out:
    return st;
}

/* ---- guesses ---- */

float recsys_clip(const struct recsys_scale *scale, float value)
{
    return value < scale->lowest ? scale->lowest : value > scale->highest ? scale->highest : value;
}

struct recsys_guess recsys_predict_row(const struct recsys_fit *fit, const float *row,
                                       uint32_t item, uint32_t time)
{
    struct recsys_guess guess =
        fit->model->guess(fit, row, item < fit->items ? item : RECSYS_UNKNOWN, time);

    if (!fit->model->implicit)
        guess.value = recsys_clip(fit->scale, guess.value);
    return guess;
}

struct recsys_guess recsys_predict(const struct recsys_fit *fit, uint32_t user, uint32_t item,
                                   uint32_t time)
{
    return recsys_predict_row(fit, user < fit->users ? recsys_at(fit, fit->answers, user) : NULL,
                              item, time);
}

uint32_t recsys_row_floats(const struct recsys_fit *fit)
{
    return fit->buffers[fit->answers].width;
}

static base_status check_ratings(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                                 uint32_t count)
{
    for (uint32_t j = 0; j < count; j++)
        if (ratings[j].item >= fit->items || !isfinite(ratings[j].value))
            return base_fail(BASE_ERR_DATA, "rating %u of a new user: %s", j + 1,
                             ratings[j].item >= fit->items ? "the item is not known"
                                                           : "the value is not a number");
    return BASE_OK;
}

base_status recsys_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                        uint32_t count, float *row)
{
    base_status st = check_ratings(fit, ratings, count);

    return st == BASE_OK ? fit->model->fold(fit, ratings, count, row) : st;
}

base_status recsys_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                           uint32_t count, uint32_t item, float *parts, float *rest_p)
{
    base_status st = check_ratings(fit, ratings, count);

    return st == BASE_OK ? fit->model->explain(fit, ratings, count, item, parts, rest_p) : st;
}

/* ---- scores ---- */

enum { SCORE_ROWS = 256 }; /* of a block, whose errors are summed by themselves */

struct scoring {
    const struct recsys_fit *fit;
    const struct recsys_rows *rows;
    uint32_t from, to;
    struct recsys_score *blocks;
};

static void score_row(const struct scoring *s, uint32_t u, struct recsys_score *sum)
{
    for (uint64_t k = s->rows->start[u]; k < s->rows->start[u + 1]; k++) {
        const struct recsys_guess guess = recsys_predict(
            s->fit, u, s->rows->column[k], s->rows->time != NULL ? s->rows->time[k] : 0);
        const double truth =
            s->fit->model->implicit ? 1 : (double)recsys_value(s->fit->scale, s->rows, k);
        const double error = (double)guess.value - truth;

        sum->count++;
        sum->absolute += fabs(error);
        sum->squared += error * error;
    }
}

/* A sum of errors, each at most `range`, as a multiple of a power of two that is so large that sums
 * over all `count` ratings are exact: the same in any order and division. */
static double round_sum(double sum, double range, uint64_t count)
{
    int exponent, bits;

    frexp(range, &exponent); /* 2^exponent is above the range */
    frexp((double)(count + 1), &bits);
    bits = 52 - bits;
    return ldexp(nearbyint(ldexp(sum, bits - exponent)), exponent - bits);
}

static void score_block(const void *context, int unit, int thread)
{
    const struct scoring *s = context;
    const uint32_t from = s->from + (uint32_t)unit * SCORE_ROWS;
    const uint32_t to = s->to - from < SCORE_ROWS ? s->to : from + SCORE_ROWS;
    const struct recsys_scale *scale = s->fit->scale;
    const double range =
        s->fit->model->implicit ? 1 : (double)scale->highest - (double)scale->lowest;
    const uint64_t count = s->rows->start[s->rows->rows]; /* of all workers' rows */
    struct recsys_score *sum = &s->blocks[unit];

    (void)thread;
    for (uint32_t u = from; u < to; u++) {
        struct recsys_score row = {0};

        score_row(s, u, &row);
        sum->count += row.count;
        sum->absolute += round_sum(row.absolute, range, count);
        sum->squared += round_sum(row.squared, range * range, count);
    }
}

base_status recsys_score(const struct recsys_fit *fit, const struct recsys_rows *by_user,
                         uint32_t from, uint32_t to, struct recsys_score *score)
{
    base_status st = BASE_OK;
    const uint32_t blocks = (to - from + SCORE_ROWS - 1) / SCORE_ROWS;
    struct scoring s = {fit, by_user, from, to, NULL};

    TRY(base_tensor(blocks, sizeof *s.blocks, "scores", &s.blocks));
    base_team_run(fit->team, (int)blocks, score_block, &s);
    for (uint32_t b = 0; b < blocks; b++) {
        score->count += s.blocks[b].count;
        score->absolute += s.blocks[b].absolute;
        score->squared += s.blocks[b].squared;
    }
out:
    base_free(s.blocks);
    return st;
}
