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

/* Ratings divided: the training part, the test and the validation part by user, and the training
 * part by item where that is asked for. Release with recsys_division_fini. */
struct recsys_division {
    struct recsys_rows by_user, by_item, test, validation;
};
struct recsys_divide {
    const char *split; /* as recsys_split_parse takes it, or "none": no tests */
    /* The share of the others that is for validation, chosen by the seed; 0: none. That part may be
     * empty. */
    double validation;
    uint64_t seed;
    int threads;
    bool by_item, times; /* what the reader of the parts needs (recsys_model) */
    /* (users) those whose ratings are in no part; NULL: none. No user or item gets another number.
     */
    const bool *excluded;
};
base_status recsys_divide(const struct recsys_ratings *ratings, const struct recsys_divide *how,
                          struct recsys_division *division_p);
void recsys_division_fini(struct recsys_division *division); /* accepts zeros */

/* (users) which of them an index lists; base_free. An id that the ratings do not have is an error.
 */
struct data_index;
base_status recsys_excluded(const struct recsys_ratings *ratings, const struct data_index *index,
                            bool **excluded_p);

/* Is rating k, of this user, for tests? */
bool recsys_is_test(const struct recsys_parts *parts, uint32_t user, uint64_t k);

#endif
