/* SPDX-License-Identifier: MIT
 *
 * Fake rating profiles, to measure how well an audit finds them (recsys/audit.h): a copy of a set
 * with users that never were. A campaign pushes one item: each of its profiles gives that item the
 * highest rating, and hides among fillers, other items that are drawn at random.
 *
 *   random     fillers are rated about the mean of all ratings
 *   average    fillers are rated about their own means: the attacker knows these
 *   bandwagon  as random, but a tenth are among the most popular items, with the highest rating
 *   segment    five popular items have the highest rating, all fillers the lowest (love-hate)
 *   mixed      a campaign of each kind, with an item of its own
 *
 * (Mobasher et al. 2007, "Toward trustworthy recommender systems".) Everything follows from the
 * seed and the ratings.
 */
#ifndef RECSYS_SHILL_H
#define RECSYS_SHILL_H

#include "data/index.h"
#include "recsys/ratings.h"

extern const char *const recsys_shill_kinds[]; /* NULL-ended */

struct recsys_shill {
    const char *kind; /* one of recsys_shill_kinds */
    double percent;   /* fake users, of the honest ones */
    uint64_t seed;
};

/* Writes the copy as text (csv), whole or not at all, and an index of its fake users. */
base_status recsys_shill(const struct recsys_ratings *ratings, const struct recsys_shill *how,
                         const char *path, struct data_index *index_p);

#endif
