/* SPDX-License-Identifier: MIT
 *
 * The MPI library's own all-gather. Slices of unequal length go around a ring.
 */
#include "coll/coll_private.h"
#include "comm/transports/mpi.h"

static double all_gather_native_estimate(const struct coll *c, const struct coll_call *call)
{
    double n = coll_size(c);

    return coll_cost_of(c, coll_log2(coll_size(c)), coll_log2(coll_size(c)),
                        (n - 1) / n * coll_bytes_of(c, call));
}

static base_status all_gather_native_run(struct coll *c, struct coll_call *call)
{
    return call->x != NULL ? coll_ring_run(c, call)
                           : comm_mpi_all_gather(c->group, call->out, call->count, call->deadline);
}

const struct coll_algorithm coll_algorithm_all_gather_native = {
    .name = "native",
    .help = "the MPI library's own",
    .kind = COLL_ALL_GATHER,
    .unfit = coll_unfit_foreign,
    .estimate = all_gather_native_estimate,
    .run = all_gather_native_run,
};
