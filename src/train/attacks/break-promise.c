/* SPDX-License-Identifier: MIT
 *
 * The worker sends other values than those whose digests it has told before.
 */
#include "train/attack.h"

const struct train_attack train_attack_break_promise = {
    .name = "break-promise",
    .help = "it sends other values than it has promised, where there is no manager",
    .breaks_promises = true,
};
