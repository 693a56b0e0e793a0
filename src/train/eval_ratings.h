/* SPDX-License-Identifier: MIT
 *
 * `paceline eval` of a rating model.
 */
#ifndef TRAIN_EVAL_RATINGS_H
#define TRAIN_EVAL_RATINGS_H

#include "store/checkpoint.h"
#include "train/train.h"

/* The result as train_eval_run has it. Of the ratings that the model was trained on, the part that
 * is asked for; of others all, and what the model does not know is guessed as unknown. */
base_status train_eval_ratings(const struct train_eval *eval,
                               const struct store_checkpoint *checkpoint, json_t **result_p,
                               char **text_p);

#endif
