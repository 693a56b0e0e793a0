/* SPDX-License-Identifier: MIT
 *
 * Tasks that count: a model has a weight for each training sample, whose gradient is minus one for
 * that sample alone. With a learning rate that equals the batch, weight i is how often sample i is
 * in the model: what "every sample once" means can be read off the weights. Computing takes virtual
 * time. `counting` goes by batches, without a network; `sweeping` by sweeps; `layers` is the real
 * task of networks (train/tasks/network.c) with a model of several layers that count.
 */
#ifndef SIM_COUNTING_H
#define SIM_COUNTING_H

#include "train/session.h"

struct sim_counting {
    uint32_t count[DATA_PARTS];
    double seconds;           /* to compute a sample */
    int layers;               /* that count, each all samples */
    struct train_fault fault; /* of workers `victim` … `victim` + `victims` - 1, by id */
    uint32_t victim, victims;
};

extern struct sim_counting sim_counting; /* of this history; set it before the job begins */

extern const struct train_task sim_task_counting, sim_task_sweeping, sim_task_layers;

struct nn_shape sim_counting_input(void); /* of `counting` and `sweeping` */

size_t sim_counting_stride(void); /* floats from one layer's weights to the next's */
void sim_counting_order(int64_t seed, int64_t epoch, uint32_t *order);
/* Are these the weights of that position? Samples before the cursor of its epoch's order are in
 * them once more than the others. `exact` false: but for rounding. NAN: a weight that another
 * worker holds. */
void sim_counting_check(const struct train_job *job, const struct train_position *position,
                        const float *weights, bool exact, const char *where);
/* The same of all that a worker holds. */
void sim_counting_check_state(const struct train_session *session, const char *where);
/* False: a step leaves weights that are rounded, or of one worker alone. */
bool sim_counting_is_exact(const struct train_session *session);
/* The last weights that a worker had go to its notes. */
void sim_counting_note(const struct train_session *session);
/* Takes the time that so many samples take to compute. */
void sim_counting_compute(double samples);

#endif
