/* SPDX-License-Identifier: MIT
 *
 * Which users of a set of ratings look made up? Two steps:
 *
 *   features   Of every user: how rarely rated its items are, how little of its choice of items the
 *              principal components of all users' choices explain, and how far its ratings are from
 *              the other ratings of the items. Each is compared with users of about as many
 *              ratings; together they are the user's score, in deviations.
 *   targets    An item is a target where users with high scores give it the highest (or the lowest)
 *              rating far more often than others do. A user that did so and whose score is high
 *              enough is suspicious: the stranger such a rating is, the lower a score will do.
 *
 * (After Mehta and Nejdl 2009, "Unsupervised strategies for shilling detection"; Zhou et al. 2015,
 * target item analysis.) A user that pushes no item together with others is not suspicious, however
 * odd its taste.
 */
#ifndef RECSYS_AUDIT_H
#define RECSYS_AUDIT_H

#include "recsys/ratings.h"

enum { RECSYS_AUDIT_COMPONENTS = 8 };

/* Of a user, in deviations from users of about as many ratings. */
struct recsys_feature {
    double obscurity;   /* its items are rated by few others */
    double unexplained; /* its choice of items, by the principal components */
    double deviation;   /* of its ratings from the means of the items */
    double score;
};

struct recsys_target {
    uint32_t item;
    float value;       /* the rating that it is given */
    uint32_t suspects; /* users that are suspicious because of it */
    double share;      /* how many of the users with high scores gave it that rating … */
    double usual;      /* … and of the others */
};

struct recsys_suspect {
    uint32_t user;
    uint32_t target; /* index in targets: the most telling one */
};

struct recsys_audit {
    struct recsys_feature *features; /* (users) */
    struct recsys_target *targets;   /* (target_count) */
    struct recsys_suspect *suspects; /* (suspect_count), by user */
    uint32_t target_count, suspect_count;
};

base_status recsys_audit(const struct recsys_ratings *ratings, struct recsys_audit *audit_p);
void recsys_audit_fini(struct recsys_audit *audit); /* accepts zeros */

/* ---- parts of it, for tests ---- */

/* explained (rows): the share of every row's choice of columns, as a vector of length 1, that the
 * first `components` principal directions of all rows span. By orthogonal iteration. */
base_status recsys_explained(const struct recsys_rows *rows, int components, double *explained);

/* values (count) become their distances from the median, in deviations (by the median distance), of
 * the up to 2 * reach + 1 values around them in `order` (count). */
base_status recsys_standardise(const uint32_t *order, uint32_t count, uint32_t reach,
                               double *values);

/* log of the chance that a Poisson number of mean `mean` is at least `count`. */
double recsys_poisson_tail(double mean, uint32_t count);

#endif
