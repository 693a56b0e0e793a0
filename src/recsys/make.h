/* SPDX-License-Identifier: MIT
 *
 * Made-up ratings with a structure that models can find: popularity of items after Zipf's law,
 * users of very different diligence, biases of both, factors of low rank, and noise. Which pairs
 * are rated and how follows from the seed alone, whatever the number of threads and the format.
 */
#ifndef RECSYS_MAKE_H
#define RECSYS_MAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct recsys_make {
    int64_t users, items, ratings;
    uint64_t seed;
    const char *format; /* one of recsys_make_formats */
    bool half_stars;    /* 0.5 … 5 in steps of 0.5 instead of 1 … 5 */
    int threads;        /* 0: one a core */
};

enum { RECSYS_MAKE_RANK = 16 };                 /* of the factors */
extern const char *const recsys_make_formats[]; /* NULL-ended: csv, dat, netflix, tab */

/* Writes the file, whole or not at all, with a progress line. */
base_status recsys_make(const struct recsys_make *make, const char *path);

#endif
