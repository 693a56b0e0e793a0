/* SPDX-License-Identifier: MIT
 *
 * Distances between the updates of workers, by which aggregators tell honest ones from others.
 * `d` is a matrix (count, count) of squared distances. It says how far a row is from any mean of
 * the rows, too, so that rules which move a mean step by step never look at the updates again.
 */
#ifndef TRAIN_DISTANCES_H
#define TRAIN_DISTANCES_H

#include "train/aggregator.h"

/* To be freed. */
double *train_distances_new(const struct train_row *rows, int count, size_t floats);

/* The squared lengths of the rows; to be freed. */
double *train_squares_new(const struct train_row *rows, int count, size_t floats);

/* The squared distance of each row from the mean by `weights`, which sum to 1; into `from`. */
void train_distances_from(const double *d, int count, const double *weights, double *from);

/* The rows that are nearest to `row`, itself first; `order` (count) has them all. */
void train_distances_order(const double *d, int count, int row, int *order);

/* The index of the least value, the first of equals. */
int train_least(const double *values, int count);

/* Where rules that move a mean begin: weights (by samples, summing to 1) of the half of the rows
 * that is nearest to the row in the midst. `near` says of which rows to take notice at all: one
 * that is a million times as far away as the half could only spoil sums of distances. */
void train_distances_begin(const struct train_updates *updates, bool *near, double *weights);

#endif
