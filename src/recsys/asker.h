/* SPDX-License-Identifier: MIT
 *
 * A user who asks a saved rating model: one that was there in training, one that has rated more
 * since, or a new one with nothing but some ratings. The latter two are folded in; the model does
 * not change.
 */
#ifndef RECSYS_ASKER_H
#define RECSYS_ASKER_H

#include "recsys/rank.h"
#include "recsys/saved.h"

struct recsys_asker {
    struct recsys_wish wish;
    struct recsys_rating *ratings; /* (count), items rising: of training, then those added */
    uint32_t *seen;                /* (count) their items */
    uint32_t count;
    float *folded; /* the row, where it is not one of the model's */
};

/* `user`: of the model, or RECSYS_UNKNOWN. `added`: ratings that the model does not know, in any
 * order; of an item that comes again, the last counts. An item that is not known or a value that is
 * not on the scale is an error. */
base_status recsys_asker_init(const struct recsys_saved *saved, uint32_t user,
                              const struct recsys_rating *added, uint32_t added_count,
                              struct recsys_asker *asker_p);
void recsys_asker_fini(struct recsys_asker *asker); /* accepts zeros */

/* A rating of the asker and what it adds to a guess. */
struct recsys_cause {
    uint32_t item;
    float value, part;
};

/* The ratings that add most to the guess for an item, the largest part first and none below 0; at
 * most `most`. */
base_status recsys_because(const struct recsys_saved *saved, const struct recsys_asker *asker,
                           uint32_t item, uint32_t most, struct recsys_cause *causes,
                           uint32_t *found_p);

#endif
