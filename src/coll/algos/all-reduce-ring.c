/* SPDX-License-Identifier: MIT
 *
 * Sums travel around the ring (coll/ring.c): every link carries the fewest bytes there can be.
 */
#include "coll/coll_private.h"

const struct coll_algorithm coll_algorithm_all_reduce_ring = {
    .name = "ring",
    .help = "around a ring: the fewest bytes on every link",
    .kind = COLL_ALL_REDUCE,
    .order = COLL_ORDER_RING,
    .estimate = coll_ring_estimate,
    .run = coll_ring_run,
};
