/* SPDX-License-Identifier: MIT
 *
 * The MPI library's own gather.
 */
#include "coll/coll_private.h"
#include "comm/transports/mpi.h"

static base_status gather_native_run(struct coll *c, struct coll_call *call)
{
    return comm_mpi_gather(c->group, call->root, call->in, call->count, call->out, call->deadline);
}

const struct coll_algorithm coll_algorithm_gather_native = {
    .name = "native",
    .help = "the MPI library's own",
    .kind = COLL_GATHER,
    .unfit = coll_unfit_foreign,
    .estimate = coll_star_estimate,
    .run = gather_native_run,
};
