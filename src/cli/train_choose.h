/* SPDX-License-Identifier: MIT
 *
 * --model auto: a rating model by what the ratings are.
 */
#ifndef CLI_TRAIN_CHOOSE_H
#define CLI_TRAIN_CHOOSE_H

#include "train/job.h"

/* Sets job->model and says why; an error where the data is no ratings. */
base_status cli_train_choose(struct train_job *job);

#endif
