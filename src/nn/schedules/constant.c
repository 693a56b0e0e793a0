/* SPDX-License-Identifier: MIT
 *
 * The learning rate stays.
 */
#include "nn/schedule.h"

static double constant_factor(const struct nn_schedule_setup *setup, uint64_t step, double position)
{
    (void)setup;
    (void)step;
    (void)position;
    return 1.0;
}

const struct nn_schedule nn_schedule_constant = {
    .name = "constant",
    .help = "the learning rate stays as it is",
    .factor = constant_factor,
};
