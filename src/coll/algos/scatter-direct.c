/* SPDX-License-Identifier: MIT
 *
 * The root sends to all at once.
 */
#include "coll/coll_private.h"

static double estimate(const struct coll *c, const struct coll_call *call)
{
    return coll_cost_of(c, 1, coll_size(c) - 1.0, (coll_size(c) - 1.0) * (double)call->count);
}

static base_status run(struct coll *c, struct coll_call *call)
{
    void *bytes[COMM_MAX_WORKERS] = {call->out};
    size_t counts[COMM_MAX_WORKERS];
    int peers = 0;

    for (int i = 0; i < coll_size(c); i++) {
        if (i == coll_rank(c) || (coll_rank(c) != call->root && i != call->root))
            continue;
        coll_flow_init(&c->flows[peers], i, coll_rank(c) == call->root);
        if (coll_rank(c) == call->root)
            bytes[peers] = (uint8_t *)call->in + call->count * (size_t)i;
        counts[peers++] = call->count;
    }
    return coll_flow_move(c, call, c->flows, bytes, counts, peers);
}

const struct coll_algorithm coll_algorithm_scatter_direct = {
    .name = "direct",
    .help = "the root sends to every rank",
    .kind = COLL_SCATTER,
    .estimate = estimate,
    .run = run,
};
