/* SPDX-License-Identifier: MIT
 *
 * A strategy's own figures: what it has counted on every worker (reissues, bytes pushed, a
 * histogram of staleness), added up over the workers of a view. A figure is a number, a list of
 * numbers, or an object of figures. Numbers are added, lists place by place, objects by name; of
 * numbers and lists whose name begins with "most_" the larger one counts. So a strategy tells
 * counts and sums; means are for readers to compute.
 */
#ifndef TRAIN_FIGURES_H
#define TRAIN_FIGURES_H

#include "train/session.h"

/* Beside a worker's figures: that it has become slow, a text for people. */
#define TRAIN_FIGURES_ANOMALY "anomaly"

/* Adds `more` to `sum`, both objects of figures. What is of another kind than in `sum` is left out.
 */
void train_figures_add(json_t *sum, const json_t *more);

/* On all workers of the view: session->figures becomes the sum. Without figures of the strategy
 * nothing happens. */
base_status train_figures_gather(struct train_session *session);

/* Tells this worker's own figures to the coordinator, for `paceline status`, if a second has passed
 * since it last did. */
void train_figures_tell(struct train_session *session, double now);

#endif
