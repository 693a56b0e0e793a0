/* SPDX-License-Identifier: MIT
 *
 * A binomial tree: rank v, counted from the root, has got it from v without its lowest bit. The
 * fewest steps, but the root sends the whole log2(n) times.
 */
#include "coll/coll_private.h"

static double broadcast_tree_estimate(const struct coll *c, const struct coll_call *call)
{
    double steps = coll_log2(coll_size(c));

    return coll_cost_of(c, steps, steps, steps * (double)call->count);
}

static base_status broadcast_tree_run(struct coll *c, struct coll_call *call)
{
    int n = coll_size(c), v = (coll_rank(c) - call->root + n) % n, bit = 1;
    int children[COMM_MAX_WORKERS], count = 0, lowest = v & -v;
    int parent = v == 0 ? -1 : ((v & (v - 1)) + call->root) % n;

    while (bit < n)
        bit *= 2;
    for (; bit > 0; bit /= 2) /* the largest subtree first */
        if ((v == 0 || bit < lowest) && v + bit < n)
            children[count++] = (v + bit + call->root) % n;
    return coll_relay(c, call, parent, children, count, call->out, call->count);
}

const struct coll_algorithm coll_algorithm_broadcast_tree = {
    .name = "tree",
    .help = "a binomial tree of messages",
    .kind = COLL_BROADCAST,
    .estimate = broadcast_tree_estimate,
    .run = broadcast_tree_run,
};
