/* SPDX-License-Identifier: MIT
 *
 * The worker says of every result that it checks that it is wrong.
 */
#include "train/attack.h"

const struct train_attack train_attack_accuse = {
    .name = "accuse",
    .help = "it says that right results are wrong, where there is no manager",
    .accuses = true,
};
