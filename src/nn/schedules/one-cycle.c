/* SPDX-License-Identifier: MIT
 *
 * One cycle (Smith 2018): rises from 1/25 to the peak over the first 30 %, then falls to
 * `final_factor`, both along half a cosine, as PyTorch's OneCycleLR does.
 */
#include <math.h>

#include "nn/schedule.h"

static double one_cycle_between(double from, double to, double position)
{
    return to + (from - to) * (1.0 + cos(M_PI * position)) / 2.0;
}

static double one_cycle_factor(const struct nn_schedule_setup *setup, uint64_t step,
                               double position)
{
    const double rise = 0.3, start = 1.0 / 25.0;

    (void)step;
    if (position < rise)
        return one_cycle_between(start, 1.0, position / rise);
    return one_cycle_between(1.0, setup->final_factor, (position - rise) / (1.0 - rise));
}

const struct nn_schedule nn_schedule_one_cycle = {
    .name = "one-cycle",
    .help = "rises to the learning rate over the first 30 %, then falls to the final factor",
    .factor = one_cycle_factor,
};
