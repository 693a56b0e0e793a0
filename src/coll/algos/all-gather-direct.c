/* SPDX-License-Identifier: MIT
 *
 * Every rank sends its block to all others at once.
 */
#include "coll/coll_private.h"

static double estimate(const struct coll *c, const struct coll_call *call)
{
    double n = coll_size(c);

    return coll_cost_of(c, 1, n - 1, COLL_CROWD * (n - 1) / n * coll_bytes_of(c, call));
}

static base_status run(struct coll *c, struct coll_call *call)
{
    struct coll_blocks blocks;

    coll_blocks_of(call, &c->world, &blocks);
    return coll_direct(c, call, &c->world, &blocks, COLL_PHASE_GATHER);
}

const struct coll_algorithm coll_algorithm_all_gather_direct = {
    .name = "direct",
    .help = "every rank sends to all others",
    .kind = COLL_ALL_GATHER,
    .estimate = estimate,
    .run = run,
};
