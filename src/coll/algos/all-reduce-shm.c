/* SPDX-License-Identifier: MIT
 *
 * Through shared memory, sums in rank order. Private buffers are copied in and out in a pipeline of
 * pieces (coll/local.c); that is no faster than good message passing. Buffers that live in a space
 * are summed where they are, by size:
 * - small: every rank sums everything, one barrier;
 * - middle: every rank sums its slice and writes it into all buffers, the caches pass them on;
 * - large: every rank sums its slice into the shared result with stores that bypass the caches, the
 *   fewest bytes between memory and cores.
 */
#include <math.h>

#include "coll/coll_private.h"

static double all_reduce_shm_estimate(const struct coll *c, const struct coll_call *call)
{
    double bytes = coll_bytes_of(c, call);

    if (bytes <= (double)c->small)
        return coll_local_cost(c, 1, coll_size(c) * bytes);
    if (call->space != NULL)
        return coll_local_cost(c, 2, 2 * bytes);
    if (!c->crowded && bytes >= 1 << 16 && bytes <= 1 << 19) /* four copies in the caches lose */
        return INFINITY;
    return coll_local_cost(c, 1 + ceil(bytes / (double)coll_local_half()), 4 * bytes);
}

static base_status all_reduce_shm_in_space(struct coll *c, struct coll_call *call, bool large)
{
    base_status st = BASE_OK;
    const float *sources[COMM_MAX_WORKERS];
    float *result = coll_space_result(call->space) + call->offset, *y[COMM_MAX_WORKERS];
    size_t from, count;
    int outs = large ? 1 : c->locals.size;

    coll_slice(call->count, c->locals.me, c->locals.size, &from, &count);
    coll_space_sources(call->space, call->offset + from, sources);
    for (int i = 0; i < outs; i++)
        y[i] = large ? result + from : (float *)sources[i];
    TRY(coll_local_meet(c, call));
    coll_local_sum(c, call, sources, count, outs, y, large);
    TRY(coll_local_barrier(c, call->deadline));
    call->result = large ? result : call->x;
out:
    return st;
}

static base_status all_reduce_shm_run(struct coll *c, struct coll_call *call)
{
    size_t bytes = call->count * sizeof *call->x;

    if (call->space == NULL || bytes <= c->small)
        return coll_local_reduce(c, call, true);
    /* Measured with buffers that were just written: in the caches up to a quarter of the last. */
    return all_reduce_shm_in_space(
        c, call, !call->in_place && bytes * (size_t)c->locals.size > c->cache / 4);
}

const struct coll_algorithm coll_algorithm_all_reduce_shm = {
    .name = "shm",
    .help = "through shared memory, sums in rank order",
    .kind = COLL_ALL_REDUCE,
    .order = COLL_ORDER_RANKS,
    .unfit = coll_unfit_apart,
    .estimate = all_reduce_shm_estimate,
    .run = all_reduce_shm_run,
};
