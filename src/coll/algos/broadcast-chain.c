/* SPDX-License-Identifier: MIT
 *
 * Every rank passes on to the next what it has got, message by message: long buffers take the time
 * of one link, short ones that of n - 1 steps.
 */
#include "coll/coll_private.h"

static double broadcast_chain_estimate(const struct coll *c, const struct coll_call *call)
{
    double bytes = (double)call->count, between = (double)coll_size(c) - 2;

    return coll_cost_of(c, between + 1, 1,
                        bytes + between * (bytes < COLL_CHUNK ? bytes : COLL_CHUNK));
}

static base_status broadcast_chain_run(struct coll *c, struct coll_call *call)
{
    int n = coll_size(c), me = coll_rank(c), next = (me + 1) % n;
    int parent = me == call->root ? -1 : (me + n - 1) % n;

    return coll_relay(c, call, parent, &next, next != call->root, call->out, call->count);
}

const struct coll_algorithm coll_algorithm_broadcast_chain = {
    .name = "chain",
    .help = "every rank passes it on to the next",
    .kind = COLL_BROADCAST,
    .estimate = broadcast_chain_estimate,
    .run = broadcast_chain_run,
};
