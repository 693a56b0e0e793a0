/* SPDX-License-Identifier: MIT
 *
 * What each unit of a model takes on this worker: a few micro-batches of constants through a
 * network of that unit alone, so that a worker need not have room for more than that. What counts
 * is CPU time, in which other processes of the host do not show, stretched by what the worker is
 * allowed of it: a worker with half a CPU (a control group's quota), or one of four workers on two
 * cores, takes twice as long.
 */
#ifndef TRAIN_STRATEGIES_RING_MEASURE_H
#define TRAIN_STRATEGIES_RING_MEASURE_H

#include "train/session.h"
#include "train/strategies/ring/costs.h"

struct ring_profile { /* zeros: nothing is measured yet */
    int units, samples;
    struct ring_unit *at; /* seconds; 0: not measured … */
    double stretch;       /* … of CPU time, times this */
};

/* Measures the units of `costs`, unless they are; what the worker is allowed of CPU time, with the
 * others of its host, is looked up each time. A unit that needs more memory than the worker has
 * to have for its own stages is left out. */
base_status ring_measure(const struct train_session *session, const struct ring_costs *costs,
                         struct ring_profile *profile);
/* How long a second of CPU time takes, for one of `workers` of `threads` threads each that have
 * `cpus` CPU seconds a second together. */
double ring_measure_stretch(double cpus, int workers, int threads);
void ring_profile_fini(struct ring_profile *profile); /* accepts zeros */

#endif
