/* SPDX-License-Identifier: MIT
 *
 * Every block goes around the ring, message by message.
 */
#include "coll/coll_private.h"

const struct coll_algorithm coll_algorithm_all_gather_ring = {
    .name = "ring",
    .help = "around a ring",
    .kind = COLL_ALL_GATHER,
    .estimate = coll_ring_estimate,
    .run = coll_ring_run,
};
