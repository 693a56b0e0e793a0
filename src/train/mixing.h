/* SPDX-License-Identifier: MIT
 *
 * Nearest-neighbour mixing (Allouah et al., AISTATS 2023): every update is replaced by the mean of
 * those that are nearest to it, itself among them. Honest updates come closer together, above all
 * where workers have different data, and a rule that is applied to the mixed ones can tell the
 * others apart. The mixture is a matrix, so that a rule which weighs by distances never needs the
 * mixed updates themselves.
 */
#ifndef TRAIN_MIXING_H
#define TRAIN_MIXING_H

#include "train/distances.h"

/* (count, count): row i has the shares of the given updates in the mixed one, the mean of the
 * `nearest` to i. To be freed. */
double *train_mixing_shares(const double *d, int count, int nearest);

/* `weights` (count, zeros) by a rule that is given the mixed updates' distances. Where it goes by
 * coordinates (`combine`) they are of the mixed updates, otherwise of the given ones. */
void train_mixing_weigh(const struct train_aggregation *rule, const struct train_updates *updates,
                        const double *shares, double *weights);

#endif
