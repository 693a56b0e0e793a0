/* SPDX-License-Identifier: MIT
 *
 * The root sends to all at once.
 */
#include "coll/coll_private.h"

const struct coll_algorithm coll_algorithm_scatter_direct = {
    .name = "direct",
    .help = "the root sends to every rank",
    .kind = COLL_SCATTER,
    .estimate = coll_star_estimate,
    .run = coll_star_run,
};
