/* SPDX-License-Identifier: MIT
 *
 * Through shared memory. Slices of a buffer that lives in a space are copied from their owners'
 * buffers; anything else goes through the staging halves.
 */
#include <math.h>
#include <string.h>

#include "coll/coll_private.h"

static double all_gather_shm_estimate(const struct coll *c, const struct coll_call *call)
{
    double bytes = coll_bytes_of(c, call);
    double part = bytes / coll_size(c);
    double pieces = ceil(part / (double)coll_local_piece(c, (size_t)part));

    if (call->x != NULL && bytes <= COLL_UNIT) /* which has one owner, who need not wait */
        return INFINITY;
    if (call->space != NULL && bytes > (double)c->small)
        return coll_local_cost(c, 2, bytes);
    return coll_local_cost(c, pieces, 2 * bytes);
}

static base_status all_gather_shm_through_halves(struct coll *c, struct coll_call *call,
                                                 const struct coll_blocks *blocks)
{
    base_status st = BASE_OK;
    size_t longest = 0, piece;

    for (int i = 0; i < c->locals.size; i++)
        longest = blocks->bytes[i] > longest ? blocks->bytes[i] : longest;
    piece = coll_local_piece(c, longest);
    for (size_t done = 0; done < longest; done += piece) {
        if (blocks->bytes[c->locals.me] > done)
            memcpy(coll_local_next(c, c->locals.me),
                   blocks->base + blocks->offset[c->locals.me] + done,
                   coll_least(blocks->bytes[c->locals.me] - done, piece));
        TRY(coll_local_meet(c, call));
        for (int i = 0; i < c->locals.size; i++)
            if (i != c->locals.me && blocks->bytes[i] > done)
                memcpy(blocks->base + blocks->offset[i] + done, coll_local_seen(c, i),
                       coll_least(blocks->bytes[i] - done, piece));
    }
out:
    return st;
}

static base_status all_gather_shm_in_space(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;

    TRY(coll_local_meet(c, call));
    for (int i = 0; i < c->locals.size; i++) {
        size_t from, count;

        coll_slice(call->count, i, c->locals.size, &from, &count);
        if (i != c->locals.me)
            memcpy(call->x + from, coll_space_of(call->space, i) + call->offset + from,
                   count * sizeof *call->x);
    }
    TRY(coll_local_barrier(c, call->deadline));
out:
    return st;
}

static base_status all_gather_shm_run(struct coll *c, struct coll_call *call)
{
    struct coll_blocks blocks;

    if (call->space != NULL && call->count * sizeof *call->x > c->small)
        return all_gather_shm_in_space(c, call);
    coll_blocks_of(call, &c->locals, &blocks);
    return all_gather_shm_through_halves(c, call, &blocks);
}

const struct coll_algorithm coll_algorithm_all_gather_shm = {
    .name = "shm",
    .help = "through shared memory",
    .kind = COLL_ALL_GATHER,
    .unfit = coll_unfit_apart,
    .estimate = all_gather_shm_estimate,
    .run = all_gather_shm_run,
};
