/* SPDX-License-Identifier: MIT
 *
 * The model r = mean + b_user + b_item, however it is fitted: what the bias-* models share, and
 * where factor models begin.
 */
#ifndef RECSYS_BIAS_H
#define RECSYS_BIAS_H

#include "recsys/model.h"

struct recsys_bias_options {
    double user_damping, item_damping; /* λ: ratings of the mean that every row has in advance */
    int64_t sweeps;
    double rate; /* of bias-gd */
};

enum { RECSYS_BIAS_USERS, RECSYS_BIAS_ITEMS }; /* their buffers */

/* The rows of `struct base_option` for damping and sweeps. */
extern const struct base_option recsys_bias_dampings[];

/* Declares both buffers. */
void recsys_bias_open(struct recsys_fit *fit);
base_status recsys_bias_reopen(struct recsys_fit *fit);

/* (Σ r - mean - other[column]) of a row; other NULL: zeros. Summed in a fixed order. */
double recsys_bias_rest(const struct recsys_fit *fit, const struct recsys_rows *rows, uint32_t row,
                        const float *other);

/* to[row] = rest / (count + damping) for the rows of a range, on the team's threads. */
void recsys_bias_solve(const struct recsys_fit *fit, const struct recsys_rows *rows,
                       const float *other, double damping, float *to, uint32_t row_from,
                       uint32_t row_to);

base_status recsys_bias_start(struct recsys_fit *fit); /* zeros */
struct recsys_guess recsys_bias_guess(const struct recsys_fit *fit, const float *user,
                                      uint32_t item, uint32_t time);
void recsys_bias_scores(const struct recsys_fit *fit, const float *user, uint32_t from, uint32_t to,
                        float *values);
base_status recsys_bias_fold(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                             uint32_t count, float *row);
base_status recsys_bias_explain(const struct recsys_fit *fit, const struct recsys_rating *ratings,
                                uint32_t count, uint32_t item, float *parts, float *rest_p);

/* Exact alternating solves into (users) and (items), for models that begin with biases. Reads the
 * ratings by user alone. */
base_status recsys_bias_alternate(const struct recsys_fit *fit, double user_damping,
                                  double item_damping, int sweeps, float *users, float *items);

#endif
