/* SPDX-License-Identifier: MIT
 *
 * One worker: nothing to combine, the gradient is the gradient.
 */
#include "train/strategy.h"

static base_status combine(struct train_exchange *x)
{
    x->ranges[0] = (struct train_range){0, x->floats, x->mine};
    x->range_count = 1;
    return BASE_OK;
}

const struct train_strategy train_strategy_single = {
    .name = "single",
    .help = "one worker does everything",
    .commit_unit = "step",
    .alone = true,
    .combine = combine,
};
