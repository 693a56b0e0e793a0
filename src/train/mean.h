/* SPDX-License-Identifier: MIT
 *
 * The weighted mean of a vector over the workers of a view, in a wire format (train/wire.h), with
 * error feedback both ways. Every worker owns a slice of the vector (coll_slice). It sends each
 * owner what it has of that owner's slice, encoded; the owner adds up what came, in the order of
 * ranks, and sends the mean to all, encoded again. A worker sends 2·(N−1)/N of the encoded vector.
 * All get the same bits: the owner, too, takes what the others can decode.
 *
 * One buffer of residuals serves both ways, because an owner's own values reach it unrounded: in
 * its slice it has what the mean still lacks, elsewhere what its own values lack. Outside a view
 * (train_mean_close) all of it is in the unit of the worker's own values.
 */
#ifndef TRAIN_MEAN_H
#define TRAIN_MEAN_H

#include "train/fault.h"
#include "train/team.h"
#include "train/wire.h"

struct train_mean {
    const struct train_wiring *wiring;
    struct train_team *team;
    size_t floats;     /* of the vector */
    float *residual;   /* the caller's, `floats` of them; NULL: the format is exact */
    float *part, *sum; /* of a slice: what came from one worker, and what all sent */
    uint8_t *sending;  /* a message for each owner; then those that bring the means */
    uint8_t *coming;   /* a message of each worker; then this owner's, with the mean */
};

/* All of these outlive it. residual: kept by the caller from view to view. Alone it does nothing.
 */
base_status train_mean_open(struct train_mean *mean, struct train_team *team,
                            const struct train_wiring *wiring, float *residual, size_t floats);
void train_mean_close(struct train_mean *mean); /* accepts zeros */
/* Bytes that a worker's open one has. */
double train_mean_memory(const struct train_wiring *wiring, size_t floats, int workers);

/* x becomes the mean, weighted by `weight` ≥ 0, of which at least one is not 0. After a failure x
 * and the residual are undefined. Fault phases of `fault` at `step`: "change", when the owners have
 * this worker's values, and "mean", when all slices have come. */
base_status train_mean_run(struct train_mean *mean, float *x, uint32_t weight,
                           const struct train_fault *fault, int64_t step);

/* For a checkpoint: rank 0 gets the mean of all workers' residuals (train/residual.h) into
 * `mean_p`, `floats` of them that every worker passes. The residuals stay as they are. */
base_status train_mean_of_residuals(struct train_mean *mean, float *mean_p);

#endif
