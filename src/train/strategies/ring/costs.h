/* SPDX-License-Identifier: MIT
 *
 * What the layers of a model cost the workers of a ring: by estimate, in flops, or measured, in
 * seconds (ring/measure.h). A *unit* is what is not cut, layers that are computed as one.
 */
#ifndef TRAIN_STRATEGIES_RING_COSTS_H
#define TRAIN_STRATEGIES_RING_COSTS_H

#include "train/strategies/ring/cut.h"

enum { RING_USUAL_SAMPLES = 32 }; /* of a micro-batch, where their number is not known */

/* What is done with a micro-batch, in the order of time. */
enum ring_part { RING_PART_FORWARD, RING_PART_BACKWARD, RING_PART_WEIGHTS, RING_PARTS };

struct ring_unit {
    double part[RING_PARTS]; /* of one micro-batch */
    double message;          /* to send, or to take, what enters it: the same back */
};

struct ring_costs {
    int units, samples; /* samples of a micro-batch */
    struct ring_unit *at;
    int *begins;                   /* the layer with which each unit begins, and the end */
    double slow[COMM_MAX_WORKERS]; /* how much longer each worker takes: 1, or more */
};

/* Estimates for micro-batches of so many samples; all workers are taken for equally fast. */
void ring_costs_estimate(const struct nn_graph *graph, int samples, struct ring_costs *costs_p);
void ring_costs_fini(struct ring_costs *costs); /* accepts zeros */

/* Puts measurements in the place of estimates: `all` has those of each worker, unit by unit, 0
 * where a worker did not measure. A unit costs the mean of what it took, with the workers' slowness
 * taken out. False, and nothing changes: no unit was measured by all. */
bool ring_costs_measured(struct ring_costs *costs, const struct ring_unit *all, int workers);

/* Stages whose workers take nearly the same time. */
void ring_costs_cut(const struct ring_costs *costs, const struct ring_options *options, int workers,
                    int laps, enum ring_order order, struct ring_cut *cut_p);
/* How much the worker with the most to do has of the mean: 1 is even. */
double ring_costs_unevenness(const struct ring_costs *costs, const struct ring_cut *cut);

/* What a micro-batch takes in each stage of a cut, by the worker that has it, messages included. */
struct ring_times {
    double part[RING_MAX_STAGES][RING_PARTS];
};
void ring_costs_times(const struct ring_costs *costs, const struct ring_cut *cut,
                      struct ring_times *times_p);

#endif
