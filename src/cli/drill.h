/* SPDX-License-Identifier: MIT
 *
 * What the files of `paceline drill` share: memory for operations, and the operations that are
 * checked.
 */
#ifndef CLI_DRILL_H
#define CLI_DRILL_H

#include "coll/coll.h"

struct cli_drill_work {
    struct coll *coll;
    int rank, size;
    float *x, *all; /* x has `room` floats, `all` so many for each rank */
    size_t room;
    struct coll_space *space; /* has space_room floats; NULL: not made yet */
    size_t space_room;
};

void cli_drill_work_fini(struct cli_drill_work *work); /* frees its memory, but not `coll` */
/* Gives x and all, or the space, room for `floats`. Every rank must do the same. */
base_status cli_drill_room(struct cli_drill_work *work, size_t floats);
base_status cli_drill_space_room(struct cli_drill_work *work, size_t floats);

/* One operation on numbers that follow from rank, `turn` and index, with its result checked.
 * BASE_ERR_INTERNAL: a result is wrong. */
struct cli_drill_kind {
    const char *name;
    base_status (*run)(struct cli_drill_work *work, size_t floats, unsigned turn);
};
extern const struct cli_drill_kind cli_drill_kinds[]; /* the last has a NULL name */

#endif
