/* SPDX-License-Identifier: MIT
 *
 * What a training does about workers that become slow (train/anomaly.h): it says so in the log, in
 * its events and to `paceline status`, and acts as --on-slow says.
 */
#ifndef TRAIN_SLOW_H
#define TRAIN_SLOW_H

#include "base/status.h"
#include "train/anomaly.h"
#include "train/clock.h"

struct train_session;

enum train_slow_action { TRAIN_SLOW_TELL, TRAIN_SLOW_REBALANCE, TRAIN_SLOW_EVICT };

struct train_slow_policy {
    enum train_slow_action action;
    int least; /* evict: so many workers stay */
};

struct train_slow { /* of one worker's process */
    struct train_slow_policy policy;
    struct {
        double at, throttled, memory, waited; /* of the process, when it was last asked … */
        double off;                           /* … and seconds without a CPU since */
    } then;
    struct train_link *links;   /* from this worker, up to the last observation … */
    struct train_link *told;    /* … and from each to each since then */
    char *texts[TRAIN_ASPECTS]; /* of this worker that are slow, as people read it; or NULL */
    bool changed;               /* the texts, since figures were told */
};

extern const char *const train_slow_names[]; /* of --on-slow, NULL-ended */
/* "tell", "rebalance", "evict" or "evict:N": N workers stay. */
base_status train_slow_parse(const char *text, struct train_slow_policy *policy_p);

void train_slow_fini(struct train_slow *slow);
/* How this worker is slow, as people read it; NULL: it is not. base_free. */
char *train_slow_text(const struct train_slow *slow);

/* A view begins: all workers are watched anew. */
void train_slow_begin(struct train_session *session);
/* What this worker did since its clock was `before`, without what it waited for. */
struct train_effort train_slow_effort(const struct train_session *session,
                                      const struct train_clock *before, double samples);
/* Adds what the system says of this process since it was last asked. */
void train_slow_evidence(struct train_session *session, struct train_effort *effort);
/* What all workers did since they last compared. Fails on a worker that is to leave. */
base_status train_slow_see(struct train_session *session, const struct train_effort *efforts);

#endif
