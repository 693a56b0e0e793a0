/* SPDX-License-Identifier: MIT
 *
 * How good predictions of a number are: mean absolute error, root of the mean squared error, and
 * R², the share of the variance that they explain (1: all; 0: no better than the mean). Errors of
 * several workers can be added up. Everything is counted in units of the target's deviation, as
 * the network computes, and told in the target's own.
 */
#ifndef TRAIN_ERRORS_H
#define TRAIN_ERRORS_H

#include <jansson.h>
#include <stdint.h>

#include "base/str.h"

struct train_errors {
    uint64_t count;
    double loss_sum;
    double absolute, squared;   /* sums over the samples: of |error|, of error² … */
    double truth, truth_square; /* … of what was to be predicted, and of its square */
};

void train_errors_add(struct train_errors *e, const float *truth, const float *predicted, int n,
                      double loss_sum);

/* As numbers that can be added over workers (train/task.h). */
size_t train_errors_numbers(void);
void train_errors_pack(const struct train_errors *e, double *numbers);
void train_errors_unpack(struct train_errors *e, const double *numbers);

double train_errors_loss(const struct train_errors *e);
/* `unit`: the target's deviation. */
double train_errors_mae(const struct train_errors *e, double unit);
double train_errors_rmse(const struct train_errors *e, double unit);
double train_errors_r2(const struct train_errors *e); /* NAN: the target does not vary */

/* {"loss","mae","rmse","r2","samples"} */
json_t *train_errors_json(const struct train_errors *e, double unit);

#endif
