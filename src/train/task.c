/* SPDX-License-Identifier: MIT */
#include "train/task.h"

uint32_t train_rows_begin(const uint64_t *work, uint32_t rows, int64_t part, int64_t parts)
{
    uint32_t low = 0, high = rows;
    double goal;

    if (work == NULL || part == 0 || part == parts)
        return (uint32_t)((int64_t)rows * part / parts);
    goal = (double)work[0] + (double)(work[rows] - work[0]) * (double)part / (double)parts;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if ((double)work[middle] < goal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

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
