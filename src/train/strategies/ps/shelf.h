/* SPDX-License-Identifier: MIT
 *
 * Where workers on a server's host read the weights that it serves: a region of shared memory for
 * every such server (comm/region.h), of its own slice. Entry n of the log is version n + 1. A
 * worker that finds the entry which it needs reads it without a word. Otherwise it asks the server,
 * which publishes the slice and says so: workers that wait for the same entry cost one copy, and
 * entries that no worker of the host asks for cost none. It lives for a view.
 */
#ifndef TRAIN_STRATEGIES_PS_SHELF_H
#define TRAIN_STRATEGIES_PS_SHELF_H

#include "comm/region.h"
#include "train/team.h"

struct ps_shelf {
    struct comm_region *of[COMM_MAX_WORKERS]; /* of each server; NULL: it is on another host */
};

/* Also the region of this process's own server, where another worker of the host may read it. */
base_status ps_shelf_open(struct ps_shelf *shelf, struct train_team *team, size_t floats,
                          int servers);
void ps_shelf_close(struct ps_shelf *shelf); /* accepts zeros */

/* A server's slice after entry `number`, unless it is there. One thread at a time. */
base_status ps_shelf_publish(struct comm_region *region, uint64_t number, const float *weights);
/* Is entry `number`, or a later one, there? */
bool ps_shelf_has(const struct comm_region *region, uint64_t number);
/* `count` floats of the newest entry, which is at least `number`; *number_p: which one it is. */
base_status ps_shelf_read(const struct comm_region *region, uint64_t number, float *weights,
                          size_t count, uint64_t *number_p);

#endif
