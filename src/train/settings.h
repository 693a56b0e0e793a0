/* SPDX-License-Identifier: MIT
 *
 * Options of the strategy that a person changes while the job runs (`paceline set`). Workers hear
 * of a change at different moments (cluster/settings.h). A head tells all of them that one has
 * heard (train/step.h), the leg ends, and between two legs all take the newest settings that any
 * of them knows. When a view begins they do the same, so that workers that join have them, too.
 */
#ifndef TRAIN_SETTINGS_H
#define TRAIN_SETTINGS_H

#include "train/session.h"

/* A cluster_check: may these settings hold in the job, whose strategy's options they are? */
base_status train_settings_check(const json_t *job, const json_t *settings);

/* This worker has heard of settings that do not hold yet. It costs a load. */
bool train_settings_are_news(const struct train_session *session);

/* On all workers of the view at the same place: the newest settings that one of them has heard of
 * hold on all of them. The strategy is not told. */
base_status train_settings_agree(struct train_session *session);
/* The same between two legs: the strategy's `changed` is called if they are others than before, and
 * people are told. Then there are no news. */
base_status train_settings_take(struct train_session *session);
/* Rank 0 tells the coordinator that the settings hold from the next step on. */
void train_settings_tell(const struct train_session *session);

/* For a strategy whose workers do not meet in a head, and which orders changes by itself: the
 * newest settings that this worker has heard of (cluster_worker_settings) … */
uint32_t train_settings_heard(const struct train_session *session, json_t **values_p);
/* … hold on this worker from now on, and `changed` is called. Settings that are not newer than
 * those that hold are ignored. */
base_status train_settings_put(struct train_session *session, uint32_t number, json_t *values);

#endif
