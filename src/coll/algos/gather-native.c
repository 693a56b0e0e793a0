/* SPDX-License-Identifier: MIT
 *
 * The MPI library's own gather.
 */
#include "coll/coll_private.h"
#include "comm/transports/mpi.h"

static double estimate(const struct coll *c, const struct coll_call *call)
{
    return coll_cost_of(c, 1, coll_size(c) - 1.0, (coll_size(c) - 1.0) * (double)call->count);
}

static base_status run(struct coll *c, struct coll_call *call)
{
    return comm_mpi_gather(c->group, call->root, call->in, call->count, call->out, call->deadline);
}

const struct coll_algorithm coll_algorithm_gather_native = {
    .name = "native",
    .help = "the MPI library's own",
    .kind = COLL_GATHER,
    .unfit = coll_unfit_foreign,
    .estimate = estimate,
    .run = run,
};
