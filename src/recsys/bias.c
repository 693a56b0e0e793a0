/* SPDX-License-Identifier: MIT */
#include "recsys/bias.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/model_private.h"

/* clang-format off */
const struct base_option recsys_bias_dampings[] = {
    {.name = "user-damping", .argument = "λ", .kind = BASE_REAL, .min = 0, .max = 1e6,
     .offset = offsetof(struct recsys_bias_options, user_damping),
     .help = "ratings of the mean that every user has in advance"},
    {.name = "item-damping", .argument = "λ", .kind = BASE_REAL, .min = 0, .max = 1e6,
     .offset = offsetof(struct recsys_bias_options, item_damping),
     .help = "ratings of the mean that every item has in advance"},
    {0}};
/* clang-format on */

void recsys_bias_open(struct recsys_fit *fit)
{
    recsys_add_rows(fit, "user_bias", RECSYS_OF_USERS, 1);
    recsys_add_rows(fit, "item_bias", RECSYS_OF_ITEMS, 1);
    fit->answers = RECSYS_BIAS_USERS;
    fit->sweeps = ((const struct recsys_bias_options *)fit->options)->sweeps;
}

base_status recsys_bias_reopen(struct recsys_fit *fit)
{
    recsys_bias_open(fit);
    return BASE_OK;
}

/* Four sums by turns, so that additions need not wait for each other. */
enum { SUMS = 4 };

static double sum_of(const struct recsys_scale *scale, const struct recsys_rows *rows,
                     uint64_t from, uint64_t to, const float *other)
{
    double sum[SUMS] = {0};
    uint64_t k = from;

    for (; k + SUMS <= to; k += SUMS)
        for (unsigned s = 0; s < SUMS; s++)
            sum[s] += (double)recsys_value(scale, rows, k + s) -
                      (other != NULL ? (double)other[rows->column[k + s]] : 0);
    for (; k < to; k++)
        sum[0] += (double)recsys_value(scale, rows, k) -
                  (other != NULL ? (double)other[rows->column[k]] : 0);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double recsys_bias_rest(const struct recsys_fit *fit, const struct recsys_rows *rows, uint32_t row,
                        const float *other)
{
    return sum_of(fit->scale, rows, rows->start[row], rows->start[row + 1], other) -
           (double)recsys_row_count(rows, row) * (double)fit->mean;
}

struct solving {
    const struct recsys_fit *fit;
    const struct recsys_rows *rows;
    const float *other;
    double damping;
    float *to;
};

static void solve_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct solving *s = context;

    (void)thread;
    for (uint32_t r = from; r < to; r++) {
        const double weight = (double)recsys_row_count(s->rows, r) + s->damping;

        s->to[r] =
            weight > 0 ? (float)(recsys_bias_rest(s->fit, s->rows, r, s->other) / weight) : 0;
    }
}

void recsys_bias_solve(const struct recsys_fit *fit, const struct recsys_rows *rows,
                       const float *other, double damping, float *to, uint32_t row_from,
                       uint32_t row_to)
{
    const struct solving s = {fit, rows, other, damping, to};

    recsys_each_range(fit->team, rows->start, row_from, row_to, solve_range, &s);
}

struct alternating {
    const struct recsys_fit *fit;
    struct recsys_units units;
    double user_damping;
    const float *items; /* NULL: zeros, and so are the users' */
    float *users;
    double *sums; /* (units, items): what users leave of the ratings */
};

/* Solves for users, and sums what they leave to their items. */
static void alternate_unit(const void *context, int unit, int thread)
{
    const struct alternating *a = context;
    const struct recsys_rows *rows = a->fit->by_user;
    double *sums = a->sums + (size_t)unit * a->fit->items;

    (void)thread;
    memset(sums, 0, a->fit->items * sizeof *sums);
    for (uint32_t u = a->units.cut[unit]; u < a->units.cut[unit + 1]; u++) {
        double known;

        if (a->items != NULL)
            solve_range(&(struct solving){a->fit, rows, a->items, a->user_damping, a->users}, u,
                        u + 1, thread);
        known = (double)a->fit->mean + (double)a->users[u];
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++)
            sums[rows->column[k]] += (double)recsys_value(a->fit->scale, rows, k) - known;
    }
}

static void solve_items(const struct alternating *a, double damping, float *items)
{
    for (uint32_t i = 0; i < a->fit->items; i++) {
        const double weight = (double)a->fit->item_counts[i] + damping;
        double sum = 0;

        for (int u = 0; u < a->units.count; u++)
            sum += a->sums[(size_t)u * a->fit->items + i];
        items[i] = weight > 0 ? (float)(sum / weight) : 0;
    }
}

base_status recsys_bias_alternate(const struct recsys_fit *fit, double user_damping,
                                  double item_damping, int sweeps, float *users, float *items)
{
    base_status st = BASE_OK;
    struct alternating a = {.fit = fit,
                            .units = recsys_units_of(fit->by_user),
                            .user_damping = user_damping,
                            .users = users};

    TRY(base_tensor((size_t)a.units.count * fit->items, sizeof *a.sums, "biases", &a.sums));
    memset(users, 0, fit->users * sizeof *users);
    for (int i = 0; i < sweeps; i++) {
        base_team_run(fit->team, a.units.count, alternate_unit, &a);
        solve_items(&a, item_damping, items);
        a.items = items;
    }
    recsys_bias_solve(fit, fit->by_user, items, user_damping, users, 0, fit->users);
out:
    base_free(a.sums);
    return st;
}

base_status recsys_bias_start(struct recsys_fit *fit)
{
    for (int b = 0; b < fit->buffer_count; b++)
        memset(fit->buffers[b].at, 0, fit->buffers[b].rows * sizeof(float));
    return BASE_OK;
}

struct recsys_guess recsys_bias_guess(const struct recsys_fit *fit, const float *user,
                                      uint32_t item, uint32_t time)
{
    const float of_user = user != NULL ? *user : 0;
    const float of_item = item != RECSYS_UNKNOWN ? *recsys_at(fit, RECSYS_BIAS_ITEMS, item) : 0;

    (void)time;
    return (struct recsys_guess){fit->mean + of_user + of_item, NAN};
}

void recsys_bias_scores(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                        float *values)
{
    const float base = fit->mean + (user != NULL ? *user : 0);

    for (uint32_t i = from; i < to; i++)
        values[i - from] = base + *recsys_at(fit, RECSYS_BIAS_ITEMS, i);
}

/* What a new user's rating adds to the user's bias. */
static double bias_part(const struct recsys_fit *fit, const struct recsys_rating *rating,
                        uint32_t count)
{
    const struct recsys_bias_options *options = fit->options;
    const float *items = fit->buffers[RECSYS_BIAS_ITEMS].at;

    return ((double)rating->value - (double)fit->mean - (double)items[rating->item]) /
           (count + options->user_damping);
}

base_status recsys_bias_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                             uint32_t count, float *row)
{
    double sum = 0;

    for (uint32_t j = 0; j < count; j++)
        sum += bias_part(fit, &ratings[j], count);
    *row = (float)sum;
    return BASE_OK;
}

base_status recsys_bias_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                                uint32_t count, uint32_t item, float *parts, float *rest_p)
{
    for (uint32_t j = 0; j < count; j++)
        parts[j] = (float)bias_part(fit, &ratings[j], count);
    *rest_p = recsys_bias_guess(fit, NULL, item, 0).value;
    return BASE_OK;
}
