/* SPDX-License-Identifier: MIT
 *
 * What is counted of samples that are evaluated, whatever is predicted: metrics of classes
 * (train/metrics.h) or errors of a number (train/errors.h).
 */
#ifndef TRAIN_TALLY_H
#define TRAIN_TALLY_H

#include "data/loader.h"
#include "nn/net.h"
#include "train/errors.h"
#include "train/metrics.h"
#include "train/task.h"

struct train_tally {
    const struct data_info *info;
    struct train_metrics metrics; /* of classes … */
    struct train_errors errors;   /* … or of a number */
};

/* `info` must outlive it. */
void train_tally_init(struct train_tally *tally, const struct data_info *info);
void train_tally_fini(struct train_tally *tally); /* accepts zeros */

/* The batch that `net` has just gone forward with. */
base_status train_tally_add(struct train_tally *tally, const struct data_batch *batch,
                            const struct nn_net *net, const struct nn_outcome *outcome);
uint64_t train_tally_count(const struct train_tally *tally);

/* As numbers that can be added over workers (train/task.h): how many, out, and back. `unpack`
 * initialises the tally. */
size_t train_tally_numbers(const struct data_info *info);
void train_tally_pack(const struct train_tally *tally, double *numbers);
void train_tally_unpack(struct train_tally *tally, const struct data_info *info,
                        const double *numbers);

/* The figure that models of such data are compared by, and its value. */
const struct train_grade *train_tally_grade(const struct data_info *info);
double train_tally_value(const struct train_tally *tally);

/* "loss 0.0731, accuracy 96.67 %", "loss 0.51, MAE 43.2, RMSE 54.1, R² 0.4871" */
void train_tally_line(const struct train_tally *tally, struct base_str *text);
/* What more there is to say, after a blank line: a report of the classes. */
void train_tally_text(const struct train_tally *tally, struct base_str *text);
json_t *train_tally_json(const struct train_tally *tally);

#endif
