/* SPDX-License-Identifier: MIT
 *
 * Sums travel around the ring (coll/ring.c): every link carries the fewest bytes there can be.
 */
#include "coll/coll_private.h"

static double estimate(const struct coll *c, const struct coll_call *call)
{
    double n = coll_size(c);

    return coll_cost_of(c, n - 1, n - 1, (n - 1) / n * coll_bytes_of(c, call));
}

static base_status run(struct coll *c, struct coll_call *call)
{
    struct coll_blocks blocks;

    coll_blocks_of(call, &c->world, &blocks);
    return coll_ring(c, call, &c->world, &blocks, COLL_PHASE_REDUCE);
}

const struct coll_algorithm coll_algorithm_reduce_scatter_ring = {
    .name = "ring",
    .help = "around a ring: the fewest bytes on every link",
    .kind = COLL_REDUCE_SCATTER,
    .order = COLL_ORDER_RING,
    .estimate = estimate,
    .run = run,
};
