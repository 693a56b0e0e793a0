/* SPDX-License-Identifier: MIT
 *
 * What each unit of a model takes on this worker: a few micro-batches of constants through a
 * network of that unit alone, so that a worker need not have room for more than that.
 */
#ifndef TRAIN_STRATEGIES_RING_MEASURE_H
#define TRAIN_STRATEGIES_RING_MEASURE_H

#include "train/session.h"
#include "train/strategies/ring/costs.h"

struct ring_profile { /* zeros: nothing is measured yet */
    int units, samples;
    struct ring_unit *at; /* seconds; 0: not measured */
};

/* Measures the units of `costs`, unless they are. A unit that needs more memory than the worker has
 * to have for its own stages is left out. */
base_status ring_measure(const struct train_session *session, const struct ring_costs *costs,
                         struct ring_profile *profile);
void ring_profile_fini(struct ring_profile *profile); /* accepts zeros */

#endif
