/* SPDX-License-Identifier: MIT
 *
 * Multiplied by `decay` every `period` steps (PyTorch's StepLR).
 */
#include <math.h>

#include "nn/schedule.h"

static double factor(const struct nn_schedule_setup *setup, uint64_t step, double position)
{
    (void)position;
    return setup->period == 0 ? 1.0 : pow(setup->decay, (double)(step / setup->period));
}

const struct nn_schedule nn_schedule_step = {
    .name = "step",
    .help = "multiplied by a factor every so many steps",
    .factor = factor,
};
