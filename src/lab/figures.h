/* SPDX-License-Identifier: MIT
 *
 * Figures: numbers taken out of a run's record (results.h) by name, and their means and deviations
 * over seeds.
 */
#ifndef LAB_FIGURES_H
#define LAB_FIGURES_H

#include "base/json.h"

/* A figure by its name: one of those that `paceline lab --help` and docs/labs.md list; NAME@N, the
 * same after epoch N; or a field of `train --json` as a path with a dot, "time.communicate". */
base_status lab_figure_check(const char *name);

#define LAB_EPOCH_FIGURES "accuracy, loss, validation_loss and validation_accuracy"
bool lab_figure_has_epochs(const char *name);
bool lab_figure_has_steps(const char *name); /* it is a field of a run's `step` events, too */
/* Is more of it better? Of a field of `train --json` it is not. */
bool lab_figure_wants_more(const char *name);

/* Of a record; NAN where it has no such number. Not for speedup, which is of two runs. */
double lab_figure_value(const char *name, const json_t *record);
double lab_figure_at_epoch(const char *name, const json_t *record, int epoch); /* from 1 */

/* How a person reads it: "accuracy %" of 97.52, which is 100 times the value. base_free. */
char *lab_figure_title(const char *name);
double lab_figure_scale(const char *name);
int lab_figure_digits(const char *name, double shown); /* after the point */

struct lab_statistics {
    size_t count;                      /* of finite values */
    double mean, deviation, low, high; /* NAN where there are too few; the deviation needs two */
};
struct lab_statistics lab_statistics(const double *values, size_t count);

#endif
