/* SPDX-License-Identifier: MIT
 *
 * Every block begins with a pause, as of a worker that hangs now and then.
 */
#include "train/attack.h"

static double stall_delay(double strength, const struct train_pause *pause)
{
    return pause->first ? strength : 0;
}

const struct train_attack train_attack_stall = {
    .name = "stall",
    .help = "it hangs for a while in every block",
    .unit = "a number of seconds",
    .strength = 3,
    .most = 60,
    .delay = stall_delay,
};
