/* SPDX-License-Identifier: MIT
 *
 * Ratings for tests: a synthetic set with biases and factors that models can find.
 */
#ifndef SUPPORT_RATED_H
#define SUPPORT_RATED_H

#include "recsys/ratings.h"

struct rated_one {
    uint32_t user, item, time;
    float value;
};

struct rated {
    struct recsys_scale scale;
    struct recsys_rows by_user, by_item; /* for training */
    struct recsys_rows test;             /* by user */
};

/* Groups ratings, which are put in order; those with test[k] are for tests (NULL: none). */
void rated_init(struct rated *rated, uint32_t users, uint32_t items, struct rated_one *all,
                uint64_t count, const bool *test);
/* Levels 0.5, 1 … 5; about `each` ratings a user; popular and rare items; a fifth for tests. */
void rated_make(struct rated *rated, uint32_t users, uint32_t items, uint32_t each);
void rated_fini(struct rated *rated);

#endif
