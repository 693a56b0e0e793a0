/* SPDX-License-Identifier: MIT
 *
 * How much of every batch, round or sweep each worker of a view computes. At first all have the
 * same. With `--shares speed` shares change so that all workers finish together, by the time that
 * each of them took for its samples. With `--shares auto` they do once some workers have been much
 * slower than others for a while; where a host has fewer cores than its workers have threads, the
 * scheduler's chance is in their times, and they stay even. All workers are told the same times,
 * and so decide the same.
 */
#ifndef TRAIN_SHARES_H
#define TRAIN_SHARES_H

#include "comm/group.h"
#include "data/loader.h"
#include "train/anomaly.h"
#include "train/shares_plan.h"

struct train_session;

#define TRAIN_SHARES_SPAN 1.0 /* seconds to watch: shorter ones tell of bursts and not of speed */

struct train_shares {
    int size;                      /* workers of the view */
    bool by_speed;                 /* false: shares are even, and `of` has ones */
    uint32_t of[COMM_MAX_WORKERS]; /* samples of a whole batch that each worker computes */
    /* Of each worker so far; what is a second older, or a step that took longer, counts half. */
    struct train_effort efforts[COMM_MAX_WORKERS];
    int known;   /* steps that are in it since the shares have changed … */
    double span; /* … and seconds */
    /* Workers compare what they did after `every` steps, half a second or one step; with speed
     * after each. */
    int every, since;
    bool rebalances;          /* a worker has become slow, and --on-slow says to follow speed */
    struct train_effort mine; /* this worker's of the steps since then */
    double unlike;            /* seconds for which other shares would have been much better */
};

extern const char *const train_shares_names[];    /* of --shares, NULL-ended */
base_status train_shares_check(const char *text); /* of --shares */
bool train_shares_follow_speed(const char *name); /* from the beginning */
bool train_shares_may_change(const char *name);   /* then or later */

void train_shares_even(struct train_shares *shares, int size);
struct data_share train_shares_of(const struct train_shares *shares, int rank);
/* What each worker did in one more step. */
void train_shares_learn(struct train_shares *shares, const struct train_effort *efforts);
/* Takes other shares of a batch of so many samples if these make steps a tenth shorter at least;
 * true: it did. */
bool train_shares_improve(struct train_shares *shares, uint32_t batch);

/* What each worker did in about a second: sets after how many steps they compare next. */
void train_shares_pace(struct train_shares *shares, const struct train_effort *efforts);
/* With auto, the same: true once workers have been unlike for long enough to follow their speeds.
 */
bool train_shares_unlike(struct train_shares *shares, const struct train_effort *efforts,
                         uint32_t batch);

/* With --shares speed, when a view has been met: shares by what its workers did in former views, if
 * all of them did something. */
base_status train_shares_begin(struct train_session *session);
/* After a step or a round and on every worker: what this worker did in it. If shares are to change,
 * the verdict says so, and the leg ends. */
base_status train_shares_tell(struct train_session *session, struct train_effort effort, int least);
/* With --shares speed: too little was seen so far to tell how fast this view's workers are. */
bool train_shares_unknown(const struct train_session *session);
/* Says which they are from the next step on, if they are by speed. */
void train_shares_say(const struct train_session *session);
/* When a view begins, whose position all workers know: shares as --shares at:… has them. */
base_status train_shares_resume(struct train_session *session);
/* Between two legs, when the verdict says so: the task gets ready for its new share, and a state
 * that is divided by shares is divided anew. */
base_status train_shares_take(struct train_session *session);

#endif
