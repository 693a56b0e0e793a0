/* SPDX-License-Identifier: MIT
 *
 * What can be wrong with a training before it begins, for `train`, which starts it, and `lab`,
 * which is about to start many.
 */
#ifndef CLI_TRAIN_CHECK_H
#define CLI_TRAIN_CHECK_H

#include "train/job.h"

/* Is it a model: a name of the zoo or of a rating model, with options that it has, or a file that
 * can be read? An unknown name is an error that has the nearest one. */
base_status cli_train_model(const char *model);

/* What would be refused by every one of so many workers is refused here, once. *least_p: the fewest
 * workers that the strategy can go on with. */
base_status cli_train_check(const struct train_job *job, int workers, int *least_p);

/* The same for words that a `paceline train` would be given, NULL-ended. The job's texts are
 * theirs. */
base_status cli_train_words(char **words, struct train_job *job_p);

/* A known data set that is not here would be fetched by the first of many runs, in its time. */
base_status cli_train_fetch(const char *data);

#endif
