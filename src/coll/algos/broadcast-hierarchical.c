/* SPDX-License-Identifier: MIT
 *
 * A chain of one rank a host, the root for its own, then through shared memory inside the hosts.
 */
#include "coll/coll_private.h"

static double broadcast_hierarchical_estimate(const struct coll *c, const struct coll_call *call)
{
    double hosts = (double)c->leaders.size - 1, bytes = (double)call->count;
    double pieces = 1 + bytes / (double)coll_local_piece(c, call->count);

    return coll_cost_of(c, hosts, 1,
                        bytes + (hosts - 1) * (bytes < COLL_CHUNK ? bytes : COLL_CHUNK)) +
           coll_local_cost(c, pieces, 2 * bytes);
}

static base_status broadcast_hierarchical_run(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    int hosts = c->leaders.size, home = 0, my_host = 0;
    int from = coll_team_find(&c->locals, call->root); /* where the bytes enter this host */
    int rank[COMM_MAX_WORKERS] = {0}, parent, next;

    for (int i = 0; i < hosts; i++) { /* the root stands in for the leader of its host */
        uint16_t host = coll_member(c, c->leaders.rank[i])->host;

        rank[i] = host == coll_member(c, call->root)->host ? call->root : c->leaders.rank[i];
        home = rank[i] == call->root ? i : home;
        my_host = host == coll_member(c, coll_rank(c))->host ? i : my_host;
    }
    if (rank[my_host] == coll_rank(c)) {
        parent = my_host == home ? -1 : rank[(my_host + hosts - 1) % hosts];
        next = (my_host + 1) % hosts;
        TRY(coll_relay(c, call, parent, &rank[next], next != home, call->out, call->count));
    }
    if (c->locals.size > 1)
        TRY(coll_local_broadcast(c, call, from >= 0 ? from : 0, call->out, call->count));
out:
    return st;
}

const struct coll_algorithm coll_algorithm_broadcast_hierarchical = {
    .name = "hierarchical",
    .help = "between hosts by messages, inside them through shared memory",
    .kind = COLL_BROADCAST,
    .unfit = coll_unfit_flat,
    .estimate = broadcast_hierarchical_estimate,
    .run = broadcast_hierarchical_run,
};
