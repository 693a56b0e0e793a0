/* SPDX-License-Identifier: MIT
 *
 * Where steps overlap, a worker updates its stages before it knows that all others can. So it keeps
 * them as they were before that update, until it knows: then the next update may write over them.
 * Running statistics change while the next step is under way; what the newest step left of them is
 * kept apart, too, and so are gradients on their way to replicas.
 */
#ifndef TRAIN_STRATEGIES_RING_SPARE_H
#define TRAIN_STRATEGIES_RING_SPARE_H

#include "train/strategies/ring/ring.h"

/* Memory for the stages, where steps overlap. */
base_status ring_spare_open(struct train_session *session);
void ring_spare_close(struct ring *ring); /* accepts zeros and half-opened */

/* A leg begins. */
void ring_spare_begin(struct train_session *session);
/* The step is computed, and about to be made: what was goes into the spare copy. */
void ring_spare_keep(struct train_session *session);
/* Gradients that `list` sends stay as they are while the next step is computed. */
void ring_spare_send(struct train_session *session);
/* The running statistics that came with a step's gradients are those of the replicas. */
void ring_spare_take(struct train_session *session);
/* The leg has ended, or failed: the state's running statistics are those of the newest step. */
void ring_spare_end(struct train_session *session);
/* The newest step never was. */
void ring_spare_restore(struct train_session *session);

#endif
