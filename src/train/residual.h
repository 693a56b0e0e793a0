/* SPDX-License-Identifier: MIT
 *
 * Residuals of lossy wire formats (train/wire.h) in a checkpoint. Every worker has one of its own,
 * and a checkpoint has room for one: the mean. Workers of any number that begin with it as their
 * residual still lack together what these lack.
 */
#ifndef TRAIN_RESIDUAL_H
#define TRAIN_RESIDUAL_H

#include "train/team.h"

/* The name of the extra (train/strategy.h) that has it. */
#define TRAIN_RESIDUAL "strategy.residual"

/* Collective: x (floats), each worker's residual in the unit of that worker's own values, which
 * travels as int8. At rank 0 it becomes the mean, elsewhere it stays. */
base_status train_residual_mean(struct train_team *team, float *x, size_t floats);

#endif
