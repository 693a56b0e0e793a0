/* SPDX-License-Identifier: MIT
 *
 * Multiplied by `decay` every `period` steps (PyTorch's StepLR).
 */
#include <math.h>

#include "nn/schedule.h"

static double step_factor(const struct nn_schedule_setup *setup, uint64_t step, double position)
{
    uint64_t times = setup->period == 0 ? 0 : step / setup->period;

    (void)position;
    return pow(setup->decay, (double)times);
}

const struct nn_schedule nn_schedule_step = {
    .name = "step",
    .help = "multiplied by a factor every so many steps",
    .factor = step_factor,
};
