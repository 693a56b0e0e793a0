/* SPDX-License-Identifier: MIT
 *
 * What the options of a ring leave open, chosen by playing the rule (ring/foresee.h). The number of
 * micro-batches decides about bits, so it follows from estimates alone: the same command has the
 * same bits on every machine. Laps, order and cut change no bit, and follow what was measured.
 */
#ifndef TRAIN_STRATEGIES_RING_CHOOSE_H
#define TRAIN_STRATEGIES_RING_CHOOSE_H

#include "train/strategies/ring/foresee.h"

/* By estimate: `least` micro-batches or more, and the plainest cut; but where more than one are
 * asked for, because of memory, and steps need not overlap, these do not any more, and that is all.
 * False: there are as many as were asked for, or cannot be so many. */
bool ring_choose(struct ring_options *options, const struct nn_graph *graph, int workers,
                 int64_t batch, int64_t least);

/* Laps, order and cut by these costs, into options->chosen. `fits` says whether workers have the
 * memory for a cut other than the plainest; NULL: they do. */
struct ring_fits {
    bool (*cut)(void *context, const struct ring_options *options);
    void *context;
};
void ring_choose_cut(struct ring_options *options, const struct ring_costs *costs, int workers,
                     struct ring_fits fits);

/* What to expect of a cut, with the micro-batches and the overlap of the options. */
void ring_expect(const struct ring_costs *costs, const struct ring_cut *cut,
                 const struct ring_options *options, struct ring_outlook *outlook_p);

#endif
