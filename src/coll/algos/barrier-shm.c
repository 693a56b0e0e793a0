/* SPDX-License-Identifier: MIT
 *
 * The barrier of the shared memory itself.
 */
#include "coll/coll_private.h"

static double barrier_shm_estimate(const struct coll *c, const struct coll_call *call)
{
    (void)call;
    return coll_local_cost(c, 1, 0);
}

static base_status barrier_shm_run(struct coll *c, struct coll_call *call)
{
    return coll_local_meet(c, call);
}

const struct coll_algorithm coll_algorithm_barrier_shm = {
    .name = "shm",
    .help = "in shared memory",
    .kind = COLL_BARRIER,
    .unfit = coll_unfit_apart,
    .estimate = barrier_shm_estimate,
    .run = barrier_shm_run,
};
