/* SPDX-License-Identifier: MIT
 *
 * What the files of strategy rotate share: a worker's part in a view. rotate.c has the sweeps and
 * their commit, turns.c the way of the bundles, versions.c the memory, place.c who has what.
 */
#ifndef TRAIN_STRATEGIES_ROTATE_ROTATE_H
#define TRAIN_STRATEGIES_ROTATE_ROTATE_H

#include "comm/engine.h"
#include "train/step.h"
#include "train/strategies/rotate/versions.h"

/* Turns from the end of a bundle's training to its next one: bundles a worker. */
enum { ROTATE_AHEAD = 2 };

struct rotate {
    uint32_t from, to;         /* this worker's rows: from … to-1 */
    struct train_extent own;   /* these in the weights … */
    struct train_extent other; /* … those of the worker before this one; or none … */
    struct train_extent rest;  /* … and what travels */
    struct rotate_versions versions;
    uint32_t bundles, turns;
    uint32_t home; /* bundles that a sweep begins and ends with here: from that of turn 0 on */
    struct comm_task *receives, *sends; /* of each turn; those of the two turns after the last … */
    uint32_t received, sent;            /* … bring the bundles home; so many were handed over */
    double seconds;                     /* of this worker's training in the sweep under way */
    bool waits;                         /* a sweep waits for rotate_settle … */
    struct train_step step;             /* … which is this one */
};

/* The bundle that this worker trains in a turn. */
uint32_t rotate_bundle_of(const struct train_session *session, uint32_t turn);
/* All turns of a sweep: on return the bundles of this worker are home again. No message is under
 * way after a failure either. */
base_status rotate_turns(struct train_session *session);

#endif
