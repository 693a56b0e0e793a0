/* SPDX-License-Identifier: MIT
 *
 * Updates of a worker's stages, and of its replicas: the stages of one or more workers before it.
 * Replicas follow when the step is known to count, where the next one leaves time for that, at the
 * latest before their gradients come anew.
 */
#ifndef TRAIN_STRATEGIES_RING_REPLICAS_H
#define TRAIN_STRATEGIES_RING_REPLICAS_H

#include "train/strategies/ring/ring.h"

/* The step's gradients come into the weights of this worker's own stages. */
void ring_update_own(struct train_session *session, const struct train_update *update);
/* The step counts: from here on replicas lack it. */
void ring_replicas_lack(struct train_session *session, const struct train_update *update);
/* A part of what they lack; false: they lack nothing. */
bool ring_update_some(struct train_session *session);
/* Replicas become as new as they can be. */
void ring_update_replicas(struct train_session *session);

/* What goes to the workers after this one, and comes from those before it; returns how many
 * messages, of which the list has room for 4 * RING_MAX_KEPT. */
size_t ring_replicas_list(struct train_session *session, struct train_message *list);

#endif
