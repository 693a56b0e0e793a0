/* SPDX-License-Identifier: MIT
 *
 * Made-up ratings, between their two halves: which there are (made.c), and how they are written
 * (make.c).
 */
#ifndef RECSYS_MAKE_PRIVATE_H
#define RECSYS_MAKE_PRIVATE_H

#include "recsys/make.h"

/* Everything that is known before a rating is made. */
struct recsys_maker {
    uint32_t users, items;
    uint64_t seed;
    bool half_stars;
    uint64_t *start; /* (users+1) ratings before each user's */
    float *keep; /* (items) alias method (Walker 1977): of a place, the chance of its own item, … */
    uint32_t *other; /* (items) … and the item otherwise */
    uint32_t *item;  /* (items) of each rank of popularity */
    float *factors;  /* (items, RECSYS_MAKE_RANK + 1): bias last */
};

/* What one thread needs to make a user's ratings. */
struct recsys_made {
    uint64_t *seen;  /* (items / 64 + 1) bits; all zero between users */
    uint32_t *items; /* (items), rising: those that the user rates */
    uint8_t *halves; /* (items): each rating, in half stars */
    uint32_t *times; /* (items) */
    uint32_t count;
};

base_status recsys_maker_init(const struct recsys_make *make, struct recsys_maker *maker_p);
void recsys_maker_fini(struct recsys_maker *maker); /* accepts zeros */
base_status recsys_made_init(const struct recsys_maker *maker, struct recsys_made *made_p);
void recsys_made_fini(struct recsys_made *made); /* accepts zeros */
void recsys_make_user(const struct recsys_maker *maker, uint32_t user, struct recsys_made *made);

#endif
