/* SPDX-License-Identifier: MIT
 *
 * The root receives from all at once.
 */
#include "coll/coll_private.h"

const struct coll_algorithm coll_algorithm_gather_direct = {
    .name = "direct",
    .help = "every rank sends to the root",
    .kind = COLL_GATHER,
    .estimate = coll_star_estimate,
    .run = coll_star_run,
};
