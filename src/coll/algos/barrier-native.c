/* SPDX-License-Identifier: MIT
 *
 * The MPI library's own barrier.
 */
#include "coll/coll_private.h"
#include "comm/transports/mpi.h"

static double barrier_native_estimate(const struct coll *c, const struct coll_call *call)
{
    (void)call;
    return 0.5 * coll_cost_of(c, coll_log2(coll_size(c)), coll_log2(coll_size(c)), 0);
}

static base_status barrier_native_run(struct coll *c, struct coll_call *call)
{
    return comm_mpi_barrier(c->group, call->deadline);
}

const struct coll_algorithm coll_algorithm_barrier_native = {
    .name = "native",
    .help = "the MPI library's own",
    .kind = COLL_BARRIER,
    .unfit = coll_unfit_foreign,
    .estimate = barrier_native_estimate,
    .run = barrier_native_run,
};
