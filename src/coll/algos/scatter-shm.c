/* SPDX-License-Identifier: MIT
 *
 * The root copies every rank's part into that rank's half of shared memory.
 */
#include <string.h>

#include "coll/coll_private.h"

static base_status scatter_shm_run(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    int me = c->locals.me;

    for (size_t done = 0, piece; done < call->count; done += piece) {
        piece = coll_least(call->count - done, coll_local_piece(c, call->count));
        for (int i = 0; me == call->root && i < c->locals.size; i++)
            if (i != me)
                memcpy(coll_local_next(c, i),
                       (const uint8_t *)call->in + call->count * (size_t)i + done, piece);
        TRY(coll_local_meet(c, call));
        if (me != call->root)
            memcpy((uint8_t *)call->out + done, coll_local_seen(c, me), piece);
    }
out:
    return st;
}

const struct coll_algorithm coll_algorithm_scatter_shm = {
    .name = "shm",
    .help = "through shared memory",
    .kind = COLL_SCATTER,
    .unfit = coll_unfit_apart,
    .estimate = coll_star_shm_estimate,
    .run = scatter_shm_run,
};
