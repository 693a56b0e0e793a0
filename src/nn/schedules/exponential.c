/* SPDX-License-Identifier: MIT
 *
 * Multiplied by the same factor in every step, from 1 to `final_factor`: a decay, or with a factor
 * above 1 the rise of a learning rate range test (Smith 2015).
 */
#include <math.h>

#include "nn/schedule.h"

static double exponential_factor(const struct nn_schedule_setup *setup, uint64_t step,
                                 double position)
{
    (void)step;
    return pow(setup->final_factor, position);
}

const struct nn_schedule nn_schedule_exponential = {
    .name = "exponential",
    .help = "multiplied by the same factor in every step, until the final factor",
    .factor = exponential_factor,
};
