/* SPDX-License-Identifier: MIT
 *
 * Every rank copies into shared memory, the root out of it.
 */
#include <string.h>

#include "coll/coll_private.h"

static base_status gather_shm_run(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    int me = c->locals.me;

    for (size_t done = 0, piece; done < call->count; done += piece) {
        piece = coll_least(call->count - done, coll_local_piece(c, call->count));
        if (me != call->root)
            memcpy(coll_local_next(c, me), (const uint8_t *)call->in + done, piece);
        TRY(coll_local_meet(c, call));
        for (int i = 0; me == call->root && i < c->locals.size; i++)
            if (i != me)
                memcpy((uint8_t *)call->out + call->count * (size_t)i + done, coll_local_seen(c, i),
                       piece);
    }
out:
    return st;
}

const struct coll_algorithm coll_algorithm_gather_shm = {
    .name = "shm",
    .help = "through shared memory",
    .kind = COLL_GATHER,
    .unfit = coll_unfit_apart,
    .estimate = coll_star_shm_estimate,
    .run = gather_shm_run,
};
