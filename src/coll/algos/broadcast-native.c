/* SPDX-License-Identifier: MIT
 *
 * The MPI library's own broadcast.
 */
#include "coll/coll_private.h"
#include "comm/transports/mpi.h"

static double broadcast_native_estimate(const struct coll *c, const struct coll_call *call)
{
    return coll_cost_of(c, coll_log2(coll_size(c)), 1, (double)call->count);
}

static base_status broadcast_native_run(struct coll *c, struct coll_call *call)
{
    return comm_mpi_broadcast(c->group, call->root, call->out, call->count, call->deadline);
}

const struct coll_algorithm coll_algorithm_broadcast_native = {
    .name = "native",
    .help = "the MPI library's own",
    .kind = COLL_BROADCAST,
    .unfit = coll_unfit_foreign,
    .estimate = broadcast_native_estimate,
    .run = broadcast_native_run,
};
