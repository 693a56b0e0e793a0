/* SPDX-License-Identifier: MIT
 *
 * Slow and fast by turns of twenty steps each: a worker of which no average of its speed is true
 * for long.
 */
#include "train/attack.h"

enum { TURN = 20 };

static double flap_delay(double strength, const struct train_pause *pause)
{
    return pause->step / TURN % 2 == 0 ? strength * pause->seconds : 0;
}

const struct train_attack train_attack_flap = {
    .name = "flap",
    .help = "it is slow for 20 steps, then fast for 20",
    .unit = "a multiple of the step's time",
    .strength = 4,
    .most = 100,
    .delay = flap_delay,
};
