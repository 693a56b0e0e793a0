/* SPDX-License-Identifier: MIT
 *
 * What the members of a view find out from what each of them has: which state is committed, who
 * describes it, who holds what of it. Every worker comes to the same answers.
 */
#ifndef TRAIN_AGREE_H
#define TRAIN_AGREE_H

#include "train/session.h"

struct train_agreed {
    struct train_version version; /* committed; {-1, -1}: none is */
    struct train_version newest;  /* that any worker has some of */
    int source;                   /* the lowest rank with some of that version, or … */
    bool fresh;                   /* … which makes a state: no worker had one; or … */
    bool back; /* … which has the newest checkpoint: no version was whole, all go back to it */
    int run_source;             /* a rank that knows the run; -1: none does */
    int64_t saved_step;         /* rank 0's */
    struct train_holds *held;   /* of every rank */
    struct train_holds *places; /* what every rank is to hold; from train_agree_places on */
};

base_status train_agree(struct train_session *session, struct train_agreed *agreed_p);
/* Once this worker has the state's description. */
void train_agree_places(const struct train_session *session, struct train_agreed *agreed);
void train_agreed_fini(struct train_agreed *agreed); /* accepts zeros */

#endif
