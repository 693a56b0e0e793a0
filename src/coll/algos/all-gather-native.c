/* SPDX-License-Identifier: MIT
 *
 * The MPI library's own all-gather. Slices of unequal length go around a ring.
 */
#include "coll/coll_private.h"
#include "comm/transports/mpi.h"

static double estimate(const struct coll *c, const struct coll_call *call)
{
    double n = coll_size(c);

    return coll_cost_of(c, coll_log2(coll_size(c)), coll_log2(coll_size(c)),
                        (n - 1) / n * coll_bytes_of(c, call));
}

static base_status run(struct coll *c, struct coll_call *call)
{
    struct coll_blocks blocks;

    if (call->x == NULL)
        return comm_mpi_all_gather(c->group, call->out, call->count, call->deadline);
    coll_blocks_of(call, &c->world, &blocks);
    return coll_ring(c, call, &c->world, &blocks, COLL_PHASE_GATHER);
}

const struct coll_algorithm coll_algorithm_all_gather_native = {
    .name = "native",
    .help = "the MPI library's own",
    .kind = COLL_ALL_GATHER,
    .unfit = coll_unfit_foreign,
    .estimate = estimate,
    .run = run,
};
