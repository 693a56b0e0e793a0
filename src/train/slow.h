/* SPDX-License-Identifier: MIT
 *
 * What a training does about workers that become slow (train/anomaly.h): it says so in the log, in
 * its events and to `paceline status`, and acts as --on-slow says.
 */
#ifndef TRAIN_SLOW_H
#define TRAIN_SLOW_H

#include "base/status.h"
#include "train/anomaly.h"

struct train_session;

enum train_slow_action { TRAIN_SLOW_TELL, TRAIN_SLOW_REBALANCE, TRAIN_SLOW_EVICT };

struct train_slow_policy {
    enum train_slow_action action;
    int least; /* evict: so many workers stay */
};

struct train_slow { /* of one worker's process */
    struct train_slow_policy policy;
    double throttled, faults; /* of the process, when workers last compared */
    bool told;                /* these are known */
    char *text;               /* this worker is slow, as people read it; NULL: it is not */
    bool changed;             /* the text, since figures were told */
};

extern const char *const train_slow_names[]; /* of --on-slow, NULL-ended */
/* "tell", "rebalance", "evict" or "evict:N": N workers stay. */
base_status train_slow_parse(const char *text, struct train_slow_policy *policy_p);

/* A view begins: all workers are watched anew. */
void train_slow_begin(struct train_session *session);
/* Adds what the system says of this process since it was last asked. */
void train_slow_evidence(struct train_session *session, struct train_effort *effort);
/* What all workers did since they last compared. Fails on a worker that is to leave. */
base_status train_slow_see(struct train_session *session, const struct train_effort *efforts);

#endif
