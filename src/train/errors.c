/* SPDX-License-Identifier: MIT */
#include "train/errors.h"

#include <math.h>

#include "base/json.h"
#include "train/task.h"

void train_errors_add(struct train_errors *e, const float *truth, const float *predicted, int n,
                      double loss_sum)
{
    for (int i = 0; i < n; i++) {
        double t = (double)truth[i], error = (double)predicted[i] - t;

        e->absolute += fabs(error);
        e->squared += error * error;
        e->truth += t;
        e->truth_square += t * t;
    }
    e->count += (uint64_t)n;
    e->loss_sum += loss_sum;
}

size_t train_errors_numbers(void)
{
    return TRAIN_SCORE_OWN + 4;
}

void train_errors_pack(const struct train_errors *e, double *numbers)
{
    numbers[TRAIN_SCORE_COUNT] = (double)e->count;
    numbers[TRAIN_SCORE_LOSS] = e->loss_sum;
    numbers[TRAIN_SCORE_CORRECT] = 0;
    numbers += TRAIN_SCORE_OWN;
    numbers[0] = e->absolute;
    numbers[1] = e->squared;
    numbers[2] = e->truth;
    numbers[3] = e->truth_square;
}

void train_errors_unpack(struct train_errors *e, const double *numbers)
{
    *e = (struct train_errors){.count = (uint64_t)numbers[TRAIN_SCORE_COUNT],
                               .loss_sum = numbers[TRAIN_SCORE_LOSS],
                               .absolute = numbers[TRAIN_SCORE_OWN],
                               .squared = numbers[TRAIN_SCORE_OWN + 1],
                               .truth = numbers[TRAIN_SCORE_OWN + 2],
                               .truth_square = numbers[TRAIN_SCORE_OWN + 3]};
}

static double mean(double sum, const struct train_errors *e)
{
    return e->count > 0 ? sum / (double)e->count : 0;
}

double train_errors_loss(const struct train_errors *e)
{
    return mean(e->loss_sum, e);
}

double train_errors_mae(const struct train_errors *e, double unit)
{
    return unit * mean(e->absolute, e);
}

double train_errors_rmse(const struct train_errors *e, double unit)
{
    return unit * sqrt(mean(e->squared, e));
}

double train_errors_r2(const struct train_errors *e)
{
    double variance = e->truth_square - e->truth * mean(e->truth, e);

    /* In units of the training part's deviation this is about 1 a sample, unless all are alike. */
    return variance > 1e-12 * (double)e->count ? 1 - e->squared / variance : NAN;
}

json_t *train_errors_json(const struct train_errors *e, double unit)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:I}", "loss", base_json_number(train_errors_loss(e)),
                     "mae", base_json_number(train_errors_mae(e, unit)), "rmse",
                     base_json_number(train_errors_rmse(e, unit)), "r2",
                     base_json_number(train_errors_r2(e)), "samples", (json_int_t)e->count);
}
