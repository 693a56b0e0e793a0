/* SPDX-License-Identifier: MIT
 *
 * Which ratings are for training and which for tests: a pure function of the seed and the rating
 * (its ids, its time), so every worker and any number of threads decide alike, and a rating stays
 * in its part when others are added.
 */
#ifndef RECSYS_SPLIT_H
#define RECSYS_SPLIT_H

#include "recsys/ratings.h"

enum recsys_split_kind {
    RECSYS_SPLIT_SHARE, /* a share of all ratings, chosen by the seed */
    RECSYS_SPLIT_FOLD,  /* the seed deals ratings into `folds`; `fold` is for tests */
    RECSYS_SPLIT_LAST,  /* of every user the `last` latest, but never all of them */
    RECSYS_SPLIT_DATE,  /* from a moment on */
};

struct recsys_split {
    enum recsys_split_kind kind;
    uint64_t seed;
    double share;         /* SHARE: of the tests, 0 … 1 */
    uint32_t folds, fold; /* FOLD: fold < folds */
    uint32_t last;        /* LAST: at least 1 */
    uint32_t from;        /* DATE: seconds since 1970 */
};

/* "0.2", "fold:2/5" (the second of five), "last", "last:3", "from:2005-01-31". */
base_status recsys_split_parse(const char *text, uint64_t seed, struct recsys_split *split_p);

/* Fails where a split by time meets ratings without times, or a part would be empty. Release with
 * recsys_parts_free. */
struct recsys_parts;
base_status recsys_parts_new(const struct recsys_ratings *ratings, const struct recsys_split *split,
                             struct recsys_parts **parts_p);
void recsys_parts_free(struct recsys_parts *parts); /* accepts NULL */

/* Ratings divided: the training part both ways, the test and the validation part by user. Release
 * with recsys_division_fini. */
struct recsys_division {
    struct recsys_rows by_user, by_item, test, validation;
};
/* `split`: as recsys_split_parse takes it, or "none": no tests. `validation`: the share of the
 * others that is for validation, chosen by the seed; 0: none. That part may be empty. */
base_status recsys_divide(const struct recsys_ratings *ratings, const char *split,
                          double validation, uint64_t seed, int threads,
                          struct recsys_division *division_p);
void recsys_division_fini(struct recsys_division *division); /* accepts zeros */

/* Is rating k, of this user, for tests? Of two parts (recsys_parts): these are recsys_keep. */
bool recsys_is_test(const void *parts, uint32_t user, uint64_t k);
bool recsys_is_train(const void *parts, uint32_t user, uint64_t k);

#endif
