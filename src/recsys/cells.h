/* SPDX-License-Identifier: MIT
 *
 * Ratings laid out for stochastic gradient steps: users in random order are cut into stripes, items
 * are dealt by popularity into groups, and a cell has the ratings of a stripe in a group. Cells
 * that share neither stripe nor group touch no common row. A stripe is cut further into one part
 * for each *rotation*, so that an item's ratings are spread over an epoch. A rating takes three
 * bytes: its item's row in the group and the code of its value.
 *
 * The users may be some of all: those of one worker. Every worker gets the same groups.
 */
#ifndef RECSYS_CELLS_H
#define RECSYS_CELLS_H

#include "recsys/kernels/kernels.h"
#include "recsys/model.h"

/* How ratings are laid out. */
struct recsys_shape {
    uint32_t from, to; /* users from … to-1 */
    uint32_t stripes, groups, rotations;
};

struct recsys_cells {
    struct recsys_shape shape;
    uint32_t group_rows;      /* of each group; the row after them is zeros, for padding */
    uint32_t *place;          /* (items): group * (group_rows + 1) + row */
    float *item_counts;       /* (groups * (group_rows + 1)) ratings of each */
    struct recsys_cell *cell; /* (rotations, stripes, groups); users count from shape.from */
    float *share;             /* (rotations, stripes): of the ratings of all users */
    float unit;               /* of what is learned; 1 for scales about as wide as 1 … 5 */
    float scale, offset;      /* a rating less the mean is (code * scale + offset) * unit */
    uint32_t longest;         /* most ratings of a user in a cell */
    void *runs, *items, *codes;
};

enum { RECSYS_MOST_GROUPS = 256 };

/* The unit, scale and offset, which do not depend on the layout. */
void recsys_cells_scale(struct recsys_cells *cells, const struct recsys_fit *fit);
/* The same for any number of threads. Release with recsys_cells_fini. */
base_status recsys_cells_init(struct recsys_cells *cells, const struct recsys_fit *fit,
                              const struct recsys_shape *shape);
void recsys_cells_fini(struct recsys_cells *cells); /* accepts zeros and half-built */

static inline uint32_t recsys_cell_at(const struct recsys_shape *shape, uint32_t rotation,
                                      uint32_t stripe, uint32_t group)
{
    return (rotation * shape->stripes + stripe) * shape->groups + group;
}

#endif
