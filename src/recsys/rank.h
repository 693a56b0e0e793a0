/* SPDX-License-Identifier: MIT
 *
 * The best items for users: every item is scored, none is sampled. Items are scored in blocks that
 * stay in a core's cache while a group of users goes over them.
 *
 * The order is that of guesses before they are clipped to the scale, because clipping would make
 * equals of all very good items; items of the same guess come in the order of their numbers, which
 * is that of their ids. So a list does not depend on the number of threads.
 */
#ifndef RECSYS_RANK_H
#define RECSYS_RANK_H

#include "recsys/model.h"

struct recsys_pick {
    uint32_t item;
    float score; /* the guess, not clipped; of similar items the cosine */
};

/* Of an item with fewer ratings a model knows little. One enthusiast may put it on top of all
 * lists, so lists leave such items out unless they are asked for. */
enum { RECSYS_USUAL_LEAST = 5 };

/* What one user asks for. */
struct recsys_wish {
    const float *row;     /* of the user, or of a fold; NULL: an unknown user */
    const uint32_t *seen; /* (seen_count) items that are left out, rising */
    uint64_t seen_count;
};

/* For each of `count` wishes the n best items that it has not seen and that are not barred
 * (`barred`: (items), or NULL), the best first. picks (count,n). found[w] is how many wish w has:
 * fewer than n where fewer items are left. Runs on the fit's team, which one thread may use at a
 * time; a single wish does without, so any thread may ask for one. BASE_ERR_DIVERGED: a guess is
 * not a number. */
base_status recsys_rank(const struct recsys_fit *fit, const struct recsys_wish *wishes,
                        uint32_t count, const bool *barred, uint32_t n, struct recsys_pick *picks,
                        uint32_t *found);

/* The guesses for items from … to-1, not clipped, as recsys_rank orders them. */
void recsys_scores(const struct recsys_fit *fit, const float *row, uint32_t from, uint32_t to,
                   float *scores);

/* The n items most like this one, the item itself left out: by the cosine of the angle between the
 * items' factors, less the mean of all items' factors. Items without factors are left out. Fails
 * for models that have none. */
base_status recsys_similar(const struct recsys_fit *fit, uint32_t item, uint32_t n,
                           struct recsys_pick *picks, uint32_t *found_p);

#endif
