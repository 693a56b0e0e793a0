/* SPDX-License-Identifier: MIT
 *
 * The star: the root talks to all other ranks, which do not talk to each other. A gather comes in
 * along it, a scatter goes out.
 */
#include <math.h>

#include "coll/coll_private.h"

double coll_star_estimate(const struct coll *c, const struct coll_call *call)
{
    double others = coll_size(c) - 1.0;

    return coll_cost_of(c, 1, others, others * (double)call->count);
}

double coll_star_shm_estimate(const struct coll *c, const struct coll_call *call)
{
    double pieces = ceil((double)call->count / (double)coll_local_piece(c, call->count));

    if (coll_mail_is_faster(c, coll_bytes_of(c, call)))
        return INFINITY;
    return coll_local_cost(c, pieces, (1.0 + coll_size(c)) * (double)call->count);
}

base_status coll_star_run(struct coll *c, struct coll_call *call)
{
    const bool root = coll_rank(c) == call->root, scatter = call->kind == COLL_SCATTER;
    uint8_t *all = scatter ? (uint8_t *)call->in : call->out; /* what is sent is only read */
    void *mine = scatter ? call->out : (void *)call->in, *bytes[COMM_MAX_WORKERS];
    size_t counts[COMM_MAX_WORKERS];
    int peers = 0;

    for (int i = 0; i < coll_size(c); i++) {
        if (i == coll_rank(c) || (!root && i != call->root))
            continue;
        coll_flow_init(&c->flows[peers], i, root == scatter);
        bytes[peers] = root ? all + call->count * (size_t)i : mine;
        counts[peers++] = call->count;
    }
    return coll_flow_move(c, call, c->flows, bytes, counts, peers);
}
