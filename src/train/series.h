/* SPDX-License-Identifier: MIT
 *
 * One figure of one worker, observation by observation, and when its level changes. What is usual
 * is the median of older observations; the newest ones are compared with it as a group of every
 * length, by the likelihood ratio of a shift of any size against none (Willsky and Jones, 1976), in
 * units of the usual scatter. No single observation counts for more than a part of the limit, so
 * that a pause is no change. Figures are logarithms, so a level's change is a factor. Pure
 * arithmetic.
 */
#ifndef TRAIN_SERIES_H
#define TRAIN_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/view.h"

enum { TRAIN_SERIES_USUAL = 64, TRAIN_SERIES_RECENT = 48 };

/* What a worker computed in a step or a round, how long it took, and where that time went. */
struct train_effort {
    double samples, seconds;
    double data, stolen; /* of these: waiting for a batch; ready to compute, but without a CPU */
    double still;     /* neither computing nor ready to: stopped, or waiting for what is no CPU */
    double throttled; /* seconds in which a CPU quota kept its process from running */
    double memory;    /* seconds in which it waited for memory: pages to come back from a disk */
};

void train_effort_add(struct train_effort *sum, const struct train_effort *effort);
/* What a sample took more than usual, where `usual` is one sample's. */
struct train_effort train_effort_excess(const struct train_effort *sum,
                                        const struct train_effort *usual);

struct train_seen {    /* an observation */
    double value, own; /* logarithms: against the peers, and by itself */
    struct train_effort effort;
    int64_t since; /* its first step */
};

struct train_series {
    float values[TRAIN_SERIES_USUAL], owns[TRAIN_SERIES_USUAL]; /* usual ones, the newest … */
    int count;                                                  /* … of so many */
    bool known;
    double level, own_level;                       /* of these */
    struct train_effort usual;                     /* a sample's */
    struct train_seen recent[TRAIN_SERIES_RECENT]; /* newer ones, oldest first: usual or not */
    int recent_count;
};

struct train_shift { /* to a new level, by the newest observations */
    int count;       /* of them; 0: there is no change */
    int64_t since;
    double value, own; /* means */
    double own_before; /* just before them */
    struct train_effort effort;
};

double train_median(double *values, int count); /* sorts them */

/* One more observation; `unit` is the usual scatter. A change is not yet the usual level. */
struct train_shift train_series_see(struct train_series *series, const struct train_seen *seen,
                                    double unit);
/* The level after the change is the usual one from now on. */
void train_series_settle(struct train_series *series, const struct train_shift *change);
/* The newest observations are on the way to a change. */
bool train_series_stirs(const struct train_series *series, double unit);
/* The normal deviation that values of such series have around their levels; 0: not known. */
double train_series_scatter(const struct train_series *const *series, int count);

#endif
