/* SPDX-License-Identifier: MIT
 *
 * What a worker has of the weights, twice: as the last sweep has left them, which is the state, and
 * as the sweep under way makes them. When a sweep is committed the two change places. With them go
 * the bundles that travel in the sweep.
 *
 * Where all workers are on one host both versions are in memory that the workers share, each of
 * them whole. Every worker writes its own rows and bundles there, so none of them travels: another
 * worker that is to keep the rows has them, also when the first is lost. Sweep n writes the version
 * that sweep n - 2 had written. So a worker must not begin a sweep before all others have come to
 * the last meeting of the one before, and a worker that has failed in that meeting can rely on the
 * newer version alone. Elsewhere both versions are the worker's own memory.
 */
#ifndef TRAIN_STRATEGIES_ROTATE_VERSIONS_H
#define TRAIN_STRATEGIES_ROTATE_VERSIONS_H

#include "comm/endpoint.h"
#include "train/state.h"
#include "train/strategy.h"

struct rotate_versions {       /* zeros: none */
    struct train_state next;   /* the weights that the sweep under way writes */
    float *bundles, *former;   /* bundles of that sweep; of the one before, or the same memory */
    struct comm_shared memory; /* of all workers; zeros: all of this is the worker's own */
    struct train_state home;   /* the worker's own memory, while the state is in the shared one */
};

/* `floats`: of all bundles together. `own`: the rows that this worker trains; `rest`: the weights
 * that all workers have. The state moves into shared memory where there is any. */
base_status rotate_versions_open(struct rotate_versions *versions, const struct train_exchange *x,
                                 size_t floats, const struct train_extent *own,
                                 const struct train_extent *rest, struct train_state *state);
/* The state is in the worker's own memory again. Accepts zeros. */
void rotate_versions_close(struct rotate_versions *versions, struct train_state *state);

bool rotate_versions_shared(const struct rotate_versions *versions);
/* A range of the next version. */
float *rotate_versions_at(const struct rotate_versions *versions, const struct train_extent *range);
/* The next version becomes the state, without a copy. */
void rotate_versions_swap(struct rotate_versions *versions, struct train_state *state);

#endif
