/* SPDX-License-Identifier: MIT
 *
 * What a set of ratings is like: how often each value was given, and how many ratings users and
 * items have.
 */
#ifndef RECSYS_STATISTICS_H
#define RECSYS_STATISTICS_H

#include "recsys/ratings.h"

enum { RECSYS_BINS = 32, RECSYS_VALUE_BINS = 10 };

/* Of users or items: their numbers of ratings. */
struct recsys_degrees {
    uint64_t least, median, most;
    double mean;
    uint64_t bin[RECSYS_BINS]; /* with 2^b … 2^(b+1)-1 ratings */
    int bins;                  /* up to the last that is not empty */
};

struct recsys_statistics {
    double mean, density; /* of the ratings; the share of all pairs that are rated */
    /* How many have each level or, where there are too many levels, are in each of
     * RECSYS_VALUE_BINS equal parts of the scale. */
    uint64_t count[RECSYS_MAX_LEVELS];
    int counts;
    struct recsys_degrees users, items;
};

base_status recsys_statistics(const struct recsys_ratings *ratings,
                              struct recsys_statistics *statistics_p);

#endif
