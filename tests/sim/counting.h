/* SPDX-License-Identifier: MIT
 *
 * A task that counts: its model has a weight for each training sample, whose gradient is minus one
 * for that sample alone. With a learning rate that equals the batch, weight i is how often sample i
 * is in the model: what "every sample once" means can be read off the weights. Computing takes
 * virtual time.
 */
#ifndef SIM_COUNTING_H
#define SIM_COUNTING_H

#include "train/session.h"

struct sim_counting {
    uint32_t count[DATA_PARTS];
    double seconds; /* to compute a sample */
};

extern struct sim_counting sim_counting; /* of this history; set it before the job begins */

/* Are these the weights of that position? Samples before the cursor of its epoch's order are in
 * them once more than the others. `exact` false: but for rounding. NAN: a weight that another
 * worker holds. */
void sim_counting_check(const struct train_job *job, const struct train_position *position,
                        const float *weights, bool exact, const char *where);
/* The same of all that a worker holds. */
void sim_counting_check_state(const struct train_session *session, const char *where);
/* Takes the time that so many samples take to compute. */
void sim_counting_compute(double samples);

#endif
