/* SPDX-License-Identifier: MIT
 *
 * One worker: there is nothing to combine, its gradient is the gradient.
 */
#include "train/forecast.h"
#include "train/parallel.h"

static base_status single_combine(struct train_exchange *x)
{
    x->ranges[0] = (struct train_range){0, x->floats, x->mine};
    x->range_count = 1;
    return BASE_OK;
}

static void single_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    (void)q;
    (void)cost; /* that of a worker alone */
}

const struct train_strategy train_strategy_single = {
    .name = "single",
    .help = "one worker does everything",
    .commit_unit = "step",
    .alone = true,
    .least = 1,
    .cost = single_cost,
    .leg = train_parallel_leg,
    .sum = &(const struct train_sum){.combine = single_combine},
};
