/* SPDX-License-Identifier: MIT
 *
 * What the workers of `paceline train` do: train/train.h.
 */
#include "train/train.h"
#include "train/settings.h"

static base_status train_program_run(struct cluster_worker *worker, const json_t *description,
                                     json_t **result_p)
{
    base_status st = BASE_OK;
    struct train_job job;

    TRY(train_job_from_json(description, &job));
    TRY(train_job_run(&job, worker, result_p));
out:
    return st;
}

const struct cluster_program cluster_program_train = {
    .name = "train",
    .help = "one worker of a training",
    .run = train_program_run,
    .check = train_settings_check,
};
