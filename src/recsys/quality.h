/* SPDX-License-Identifier: MIT
 *
 * How good a rating model is on ratings that it was not trained on: the errors of its guesses,
 * which values it takes for which, and how many of the items that a user liked are among the N best
 * that it names out of all items that the user has not rated in training.
 */
#ifndef RECSYS_QUALITY_H
#define RECSYS_QUALITY_H

#include "base/json.h"
#include "base/str.h"
#include "recsys/model.h"

/* Values are counted by bins: the levels of the scale where there are up to RECSYS_QUALITY_BINS, or
 * else as many equal parts of it. */
enum { RECSYS_QUALITY_BINS = 20 };

struct recsys_quality {
    uint64_t count; /* ratings */
    double mae, rmse;
    int bins;
    float bin[RECSYS_QUALITY_BINS]; /* a level, or the middle of a part */
    /* confusion[t][g]: ratings of bin t whose guess is nearest to bin g; of models that are not
     * implicit. */
    uint64_t confusion[RECSYS_QUALITY_BINS][RECSYS_QUALITY_BINS];

    /* Of lists of the n best, as means over users who have a relevant item in the tests: one rated
     * `relevant` or more. */
    uint32_t n;
    uint32_t least; /* ratings in training of the items that a list may have */
    float relevant;
    uint64_t users;
    double precision, recall, ndcg; /* NAN without such users */
    double coverage;                /* the share of all items that are in some user's list */
};

/* `train`: the ratings that the model knows, whose items are left out of the lists. Both have the
 * users and items of the fit. relevant NAN: the upper 30 % of the scale. The same bits for any
 * number of threads. */
base_status recsys_quality(const struct recsys_fit *fit, const struct recsys_rows *train,
                           const struct recsys_rows *test, uint32_t n, uint32_t least,
                           float relevant, struct recsys_quality *quality_p);

/* The bin that a value is counted in. */
int recsys_quality_bin(const struct recsys_quality *quality, float value);

/* quality_tell.c: an object (docs/json.md), a new reference; and lines of text. */
json_t *recsys_quality_json(const struct recsys_fit *fit, const struct recsys_quality *quality);
void recsys_quality_text(const struct recsys_fit *fit, const struct recsys_quality *quality,
                         struct base_str *text);

#endif
