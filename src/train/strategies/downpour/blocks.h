/* SPDX-License-Identifier: MIT
 *
 * Samples of an epoch, divided into blocks that are given out: which samples a block has follows
 * from the epoch's order and the division alone, so that a block is described by a number. Every
 * sample is in one block.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_BLOCKS_H
#define TRAIN_STRATEGIES_DOWNPOUR_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* How samples are dealt to blocks. */
enum train_split {
    DOWNPOUR_SPLIT_RANDOM, /* the order is cut */
    DOWNPOUR_SPLIT_CLASS,  /* each block has classes of its own, as far as there are enough */
    DOWNPOUR_SPLIT_EQUAL,  /* each block has the same share of every class, give or take a sample */
    /* Of each class the blocks have shares by chance (Dirichlet): data that workers have collected
     * apart. The same in every round. */
    DOWNPOUR_SPLIT_DIRICHLET,
    DOWNPOUR_SPLIT_LOCAL, /* nothing is dealt: a block is what its worker has itself */
};
extern const char *const train_split_names[]; /* "random", …; NULL-ended */

struct train_division {
    enum train_split split;
    uint32_t blocks;
    uint32_t samples;       /* to be divided */
    const uint32_t *order;  /* (samples) their ids */
    const int32_t *classes; /* (samples) of each; NULL: all are of one */
    int32_t class_count;
    double alpha;  /* of `dirichlet`: the less, the more uneven */
    uint64_t seed; /* of `dirichlet` */
};

/* counts (blocks): the samples of each block. */
void downpour_blocks_count(const struct train_division *division, uint32_t *counts);
/* The samples of one block, in the order of the epoch; ids has room for all of them. */
void downpour_blocks_ids(const struct train_division *division, uint32_t block, uint32_t *ids);

#endif
