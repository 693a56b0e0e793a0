/* SPDX-License-Identifier: MIT
 *
 * Ratings as a data set, for networks: a sample is the numbers of a user and an item, its target
 * the rating. A sample's index is that of the rating in its part, users rising.
 */
#ifndef RECSYS_PAIRS_H
#define RECSYS_PAIRS_H

#include "data/dataset.h"
#include "recsys/split.h"

/* The training and the test part of `parts`, which must outlive the set, as must `ratings`. Of the
 * options `validation` and `seed` count. */
base_status recsys_pairs_open(const char *name, const struct recsys_ratings *ratings,
                              const struct recsys_division *parts,
                              const struct data_options *options, struct data_set **set_p);

#endif
