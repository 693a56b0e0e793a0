/* SPDX-License-Identifier: MIT
 *
 * Dissemination (Hensgen, Finkel & Manber 1988): in step k every rank tells the rank 2^k further on
 * and hears from the one 2^k before; after log2(n) steps each has heard of all others.
 */
#include "coll/coll_private.h"

static double barrier_dissemination_estimate(const struct coll *c, const struct coll_call *call)
{
    (void)call;
    return coll_cost_of(c, coll_log2(coll_size(c)), coll_log2(coll_size(c)), 0);
}

static base_status barrier_dissemination_run(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    int n = coll_size(c), me = coll_rank(c);
    uint8_t told = 1, heard = 0;
    void *bytes[] = {&told, &heard};
    const size_t counts[] = {1, 1};

    for (int distance = 1; distance < n; distance *= 2) {
        coll_flow_init(&c->flows[0], (me + distance) % n, true);
        coll_flow_init(&c->flows[1], (me + n - distance) % n, false);
        TRY(coll_flow_move(c, call, c->flows, bytes, counts, 2));
    }
out:
    return st;
}

const struct coll_algorithm coll_algorithm_barrier_dissemination = {
    .name = "dissemination",
    .help = "messages to ranks at distance 1, 2, 4, …",
    .kind = COLL_BARRIER,
    .estimate = barrier_dissemination_estimate,
    .run = barrier_dissemination_run,
};
