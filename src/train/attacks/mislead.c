/* SPDX-License-Identifier: MIT
 *
 * The worker gives those that check a block other values than it has promised, so that they say
 * that something is wrong; to all others it shows the right ones.
 */
#include "train/attack.h"

const struct train_attack train_attack_mislead = {
    .name = "mislead",
    .help = "it gives a worker that checks another one other values than it has promised to all",
    .misleads = true,
};
