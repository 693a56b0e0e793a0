/* SPDX-License-Identifier: MIT
 *
 * --model auto: a rating model by what the ratings are. --strategy auto: one that fits into memory.
 * --workers auto: number, threads and strategy by a plan.
 */
#ifndef CLI_TRAIN_CHOOSE_H
#define CLI_TRAIN_CHOOSE_H

#include "cluster/launch.h"
#include "train/job.h"

/* Sets job->model and says why; an error where the data is no ratings. */
base_status cli_train_choose(struct train_job *job);

/* --strategy auto with --memory, for `workers` on this host: where the usual choice needs more than
 * that, the fastest of those that fit, by a short measurement; a log line says why. *strategy_p:
 * its text, for as long as the job is used, base_free; NULL: the usual choice stays. */
base_status cli_train_choose_strategy(struct train_job *job, int workers, char **strategy_p);

/* --workers auto: sets launch->workers, job->threads and job->strategy to what `paceline plan`
 * finds fastest on this host, of what has the losses of one worker; a log line says why.
 * *strategy_p as above. */
base_status cli_train_choose_workers(struct train_job *job, struct cluster_launch *launch,
                                     char **strategy_p);

#endif
