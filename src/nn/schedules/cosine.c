/* SPDX-License-Identifier: MIT
 *
 * Half a cosine from 1 to `final_factor` (Loshchilov and Hutter 2016, without restarts).
 */
#include <math.h>

#include "nn/schedule.h"

static double cosine_factor(const struct nn_schedule_setup *setup, uint64_t step, double position)
{
    (void)step;
    return setup->final_factor + (1.0 - setup->final_factor) * (1.0 + cos(M_PI * position)) / 2.0;
}

const struct nn_schedule nn_schedule_cosine = {
    .name = "cosine",
    .help = "falls along half a cosine to the final factor",
    .factor = cosine_factor,
};
