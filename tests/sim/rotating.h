/* SPDX-License-Identifier: MIT
 *
 * The model that counts its samples, in sweeps that go by rotations (train/task.h). The first half
 * of the samples are rows that stay with a worker; the others are in bundles, which travel. In a
 * sweep every row and every sample of a bundle is counted once: a row when a certain bundle is
 * here, a bundle's sample by the worker that has a certain row. So a bundle that is lost, doubled
 * or old, and a worker that a bundle passes by, can be read off the weights.
 */
#ifndef SIM_ROTATING_H
#define SIM_ROTATING_H

#include "train/session.h"

struct sim_rotating {
    uint64_t *work;    /* (rows+1) */
    uint32_t from, to; /* this worker's rows */
    uint32_t bundles;
    size_t each; /* samples of a bundle; the last may have fewer */
};

extern const struct train_rotation sim_rotation; /* of a task whose work begins with the above */

void sim_rotating_init(struct sim_rotating *r, uint32_t samples);
void sim_rotating_fini(struct sim_rotating *r); /* accepts zeros */

#endif
