/* SPDX-License-Identifier: MIT
 *
 * Every rank sends its block to all others at once.
 */
#include "coll/coll_private.h"

const struct coll_algorithm coll_algorithm_all_gather_direct = {
    .name = "direct",
    .help = "every rank sends to all others",
    .kind = COLL_ALL_GATHER,
    .estimate = coll_direct_estimate,
    .run = coll_direct_run,
};
