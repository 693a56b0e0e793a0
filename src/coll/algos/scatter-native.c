/* SPDX-License-Identifier: MIT
 *
 * The MPI library's own scatter.
 */
#include "coll/coll_private.h"
#include "comm/transports/mpi.h"

static base_status scatter_native_run(struct coll *c, struct coll_call *call)
{
    return comm_mpi_scatter(c->group, call->root, call->in, call->count, call->out, call->deadline);
}

const struct coll_algorithm coll_algorithm_scatter_native = {
    .name = "native",
    .help = "the MPI library's own",
    .kind = COLL_SCATTER,
    .unfit = coll_unfit_foreign,
    .estimate = coll_star_estimate,
    .run = scatter_native_run,
};
