/* SPDX-License-Identifier: MIT
 *
 * Every rank sends each slice to its owner, which adds in rank order (coll/direct.c): the bits of
 * shared memory, in the fewest steps; many senders at one receiver cost a little.
 */
#include "coll/coll_private.h"

const struct coll_algorithm coll_algorithm_all_reduce_direct = {
    .name = "direct",
    .help = "every rank sends to all others, sums in rank order",
    .kind = COLL_ALL_REDUCE,
    .order = COLL_ORDER_RANKS,
    .estimate = coll_direct_estimate,
    .run = coll_direct_run,
};
