/* SPDX-License-Identifier: MIT
 *
 * Every rank sends each slice to its owner, which adds in rank order (coll/direct.c): the bits of
 * shared memory, in the fewest steps; many senders at one receiver cost a little.
 */
#include "coll/coll_private.h"

static double estimate(const struct coll *c, const struct coll_call *call)
{
    double n = coll_size(c), bytes = coll_bytes_of(c, call);
    double messages =
        bytes <= COLL_UNIT ? n - 1 : 2 * (n - 1); /* of one slice: to its owner and back */

    return coll_cost_of(c, 2, messages, COLL_CROWD * 2 * (n - 1) / n * bytes);
}

static base_status run(struct coll *c, struct coll_call *call)
{
    struct coll_blocks blocks;

    coll_blocks_of(call, &c->world, &blocks);
    return coll_direct(c, call, &c->world, &blocks, COLL_PHASE_REDUCE | COLL_PHASE_GATHER);
}

const struct coll_algorithm coll_algorithm_all_reduce_direct = {
    .name = "direct",
    .help = "every rank sends to all others, sums in rank order",
    .kind = COLL_ALL_REDUCE,
    .order = COLL_ORDER_RANKS,
    .estimate = estimate,
    .run = run,
};
