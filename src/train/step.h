/* SPDX-License-Identifier: MIT
 *
 * A step under way on this worker: what the legs of all strategies that compute gradients have in
 * common. A leg makes it of these parts, with its own way to combine and apply between them:
 *
 *   train_step_compute   the next batch; forward and backward of this worker's share
 *   train_step_judge     refuses a loss that has diverged, before it reaches the weights
 *   train_step_advance   the step is in this worker's weights: the position moves on
 *   train_step_count     samples are in the weights of all workers: they count for the epoch
 *   train_step_end       it is judged and told later than it advanced: its time ends here
 *   train_step_tell      the journal's entry
 *   train_step_undo      the step failed: it never was
 */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "train/session.h"
#include "train/update.h"

struct train_step {
    double began;
    struct train_clock before; /* the clock then */
    struct data_batch batch;
    struct train_outcome outcome; /* of this worker's share; once it was summed, of all workers */
    struct train_update update;
    double ended;             /* before it was judged and told; 0: it is told at once */
    struct train_clock after; /* the clock then */
};

/* The learning rate of the step after so many. */
double train_step_lr(const struct train_session *session, int64_t step);
/* What train_step_compute begins with. */
void train_step_begin(struct train_session *session, struct train_step *step);
base_status train_step_compute(struct train_session *session, struct train_step *step);
base_status train_step_judge(struct train_session *session, const struct train_step *step);
/* What it judges by: is this mean loss no number, or far above the first? */
bool train_loss_diverged(struct train_session *session, double loss);
void train_step_advance(struct train_session *session, const struct train_step *step);
void train_step_count(struct train_session *session, const struct train_outcome *outcome,
                      int64_t own_samples);
void train_step_end(const struct train_session *session, struct train_step *step);
void train_step_tell(struct train_session *session, const struct train_step *step);
/* `st`: why it failed. */
void train_step_undo(struct train_session *session, const struct train_step *step, base_status st);

/* The head of the exchange: what the workers must know of each other. After the sum all of them
 * read the same verdict and the same outcome. */
void train_head_fill(struct train_session *session, const struct train_outcome *outcome);
/* Where workers are not believed: one head of all workers' (size, TRAIN_HEAD), by what each of them
 * has of the batch. The loss is the median of their mean losses. */
void train_head_judge(const float *heads, const uint32_t *samples, int size, float *head_p);
void train_head_read(struct train_session *session, const float *head,
                     struct train_outcome *outcome);

#endif
