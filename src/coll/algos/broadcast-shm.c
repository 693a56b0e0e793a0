/* SPDX-License-Identifier: MIT
 *
 * The root copies into shared memory, the others out of it, half by half.
 */
#include <math.h>

#include "coll/coll_private.h"

static double broadcast_shm_estimate(const struct coll *c, const struct coll_call *call)
{
    double pieces = ceil((double)call->count / (double)coll_local_piece(c, call->count));

    if (c->crowded && call->count <= 16 << 10) /* ranks that take turns: no barrier for a message */
        return INFINITY;
    return coll_local_cost(c, pieces, 2.0 * (double)call->count);
}

static base_status broadcast_shm_run(struct coll *c, struct coll_call *call)
{
    return coll_local_broadcast(c, call, call->root, call->out, call->count);
}

const struct coll_algorithm coll_algorithm_broadcast_shm = {
    .name = "shm",
    .help = "through shared memory",
    .kind = COLL_BROADCAST,
    .unfit = coll_unfit_apart,
    .estimate = broadcast_shm_estimate,
    .run = broadcast_shm_run,
};
