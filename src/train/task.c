/* SPDX-License-Identifier: MIT */
#include "train/task.h"

const struct train_task *train_task_of(const char *model)
{
    const struct train_task *rest = NULL;

    for (size_t i = 0; i < train_task_count; i++) {
        const struct train_task *task = train_task_registry[i];

        if (task->takes == NULL)
            rest = task;
        else if (model != NULL && task->takes(model))
            return task;
    }
    return rest;
}
