/* SPDX-License-Identifier: MIT
 *
 * Every step takes longer, as on a worker that lacks CPU time.
 */
#include "train/attack.h"

static double slow_delay(double strength, const struct train_pause *pause)
{
    return strength * pause->seconds;
}

const struct train_attack train_attack_slow = {
    .name = "slow",
    .help = "it sleeps after every step",
    .unit = "a multiple of the step's time",
    .strength = 2,
    .most = 100,
    .delay = slow_delay,
};
