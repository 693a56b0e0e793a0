/* SPDX-License-Identifier: MIT
 *
 * The workers of a view divide a model between them: each measures, all learn what the others have
 * measured, and one decides for all.
 */
#ifndef TRAIN_STRATEGIES_RING_DIVIDE_H
#define TRAIN_STRATEGIES_RING_DIVIDE_H

#include "train/strategies/ring/choose.h"
#include "train/strategies/ring/measure.h"

/* Collective. The options of all workers become those of rank `source`, with a cut for this view.
 * *outlook_p: what a step is expected to be; in flops where nothing was measured, *measured_p. */
base_status ring_divide(struct train_session *session, int source, struct ring_profile *profile,
                        struct ring_outlook *outlook_p, bool *measured_p);

#endif
