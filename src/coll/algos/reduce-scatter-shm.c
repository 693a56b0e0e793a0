/* SPDX-License-Identifier: MIT
 *
 * Through shared memory: every rank sums its own slice of all buffers. Private buffers go
 * through the staging halves, which then hold an equal part of every slice, so that all have the
 * same work.
 */
#include <math.h>
#include <string.h>

#include "coll/coll_private.h"

static double reduce_scatter_shm_estimate(const struct coll *c, const struct coll_call *call)
{
    double bytes = coll_bytes_of(c, call);

    if (bytes <= COLL_UNIT) /* which has one owner: the others need not wait */
        return INFINITY;
    if (call->space != NULL && bytes > (double)c->small)
        return coll_local_cost(c, 2, bytes);
    return coll_local_cost(c, ceil(bytes / (double)coll_local_half()), 2 * bytes);
}

static base_status reduce_scatter_shm_in_space(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    const float *sources[COMM_MAX_WORKERS];
    size_t from, count;
    float *mine;

    coll_slice(call->count, c->locals.me, c->locals.size, &from, &count);
    coll_space_sources(call->space, call->offset + from, sources);
    mine = call->x + from; /* no other rank reads this part of this buffer */
    TRY(coll_local_meet(c, call));
    coll_local_sum(c, call, sources, count, 1, &mine, false);
    TRY(coll_local_barrier(c, call->deadline));
out:
    return st;
}

static base_status reduce_scatter_shm_run(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    const float *sources[COMM_MAX_WORKERS];
    const size_t n = (size_t)c->locals.size, part = coll_local_half() / sizeof(float) / n;
    size_t from, count, longest = 0;

    if (call->space != NULL && call->count * sizeof *call->x > c->small)
        return reduce_scatter_shm_in_space(c, call);
    for (int i = 0; i < c->locals.size; i++) {
        coll_slice(call->count, i, c->locals.size, &from, &count);
        longest = count > longest ? count : longest;
    }
    for (size_t done = 0; done < longest; done += part) {
        float *half = (float *)coll_local_next(c, c->locals.me);

        for (int i = 0; i < c->locals.size; i++) {
            coll_slice(call->count, i, c->locals.size, &from, &count);
            if (count > done)
                memcpy(half + part * (size_t)i, call->x + from + done,
                       coll_least(count - done, part) * sizeof *half);
        }
        TRY(coll_local_meet(c, call));
        coll_slice(call->count, c->locals.me, c->locals.size, &from, &count);
        for (int i = 0; i < c->locals.size; i++)
            sources[i] = (const float *)coll_local_seen(c, i) + part * (size_t)c->locals.me;
        if (count > done) {
            float *mine = call->x + from + done;

            coll_local_sum(c, call, sources, coll_least(count - done, part), 1, &mine, false);
        }
    }
out:
    return st;
}

const struct coll_algorithm coll_algorithm_reduce_scatter_shm = {
    .name = "shm",
    .help = "through shared memory, sums in rank order",
    .kind = COLL_REDUCE_SCATTER,
    .order = COLL_ORDER_RANKS,
    .unfit = coll_unfit_apart,
    .estimate = reduce_scatter_shm_estimate,
    .run = reduce_scatter_shm_run,
};
