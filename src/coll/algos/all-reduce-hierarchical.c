/* SPDX-License-Identifier: MIT
 *
 * Shared memory inside a host, messages between the hosts' leaders: the network carries a buffer a
 * host and not one a worker. Ranks of a host are added in order, then hosts in the order of their
 * leaders.
 */
#include <string.h>

#include "coll/coll_private.h"

static double all_reduce_hierarchical_estimate(const struct coll *c, const struct coll_call *call)
{
    double hosts = c->leaders.size, bytes = coll_bytes_of(c, call);

    return coll_cost_of(c, 2, 2 * (hosts - 1), COLL_CROWD * 2 * (hosts - 1) / hosts * bytes) +
           coll_local_cost(c, 2 + bytes / (double)coll_local_half(), 4 * bytes);
}

/* x of the leaders, whose host's sum is in it. */
static base_status all_reduce_hierarchical_between_hosts(struct coll *c,
                                                         const struct coll_call *call, float *x)
{
    const struct coll_sum sum = {.scale = NULL, .wire = call->sum->wire};
    struct coll_call inner = *call;
    struct coll_blocks blocks;

    if (c->leaders.me < 0)
        return BASE_OK;
    inner.x = x;
    inner.sum = &sum;
    coll_blocks_of(&inner, &c->leaders, &blocks);
    return coll_direct(c, &inner, &c->leaders, &blocks, COLL_PHASE_REDUCE | COLL_PHASE_GATHER);
}

static base_status all_reduce_hierarchical_in_space(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    const float *sources[COMM_MAX_WORKERS];
    float *result = coll_space_result(call->space) + call->offset, *mine;
    size_t from, count;

    coll_slice(call->count, c->locals.me, c->locals.size, &from, &count);
    coll_space_sources(call->space, call->offset + from, sources);
    mine = result + from;
    TRY(coll_local_meet(c, call));
    coll_local_sum(c, call, sources, count, 1, &mine, false);
    TRY(coll_local_barrier(c, call->deadline));
    TRY(all_reduce_hierarchical_between_hosts(c, call, result));
    TRY(coll_local_barrier(c, call->deadline));
    if (call->in_place)
        memcpy(call->x, result, call->count * sizeof *result);
    else
        call->result = result;
out:
    return st;
}

static base_status all_reduce_hierarchical_run(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    float scale = coll_scale_of(call, coll_rank(c));

    if (call->space != NULL)
        return all_reduce_hierarchical_in_space(c, call);
    if (c->locals.size > 1)
        TRY(coll_local_reduce(c, call, false));
    else if (scale != 1.0f)
        coll_scale(call->count, scale, call->x);
    TRY(all_reduce_hierarchical_between_hosts(c, call, call->x));
    if (c->locals.size > 1)
        TRY(coll_local_broadcast(c, call, 0, call->x, call->count * sizeof *call->x));
out:
    return st;
}

const struct coll_algorithm coll_algorithm_all_reduce_hierarchical = {
    .name = "hierarchical",
    .help = "shared memory inside a host, messages to all others between hosts",
    .kind = COLL_ALL_REDUCE,
    .order = COLL_ORDER_HOSTS,
    .unfit = coll_unfit_flat,
    .estimate = all_reduce_hierarchical_estimate,
    .run = all_reduce_hierarchical_run,
};
