/* SPDX-License-Identifier: MIT
 *
 * paceline data poison: a poisoned copy of ratings or images and an index of what is false in it,
 * so that `paceline audit` can be measured.
 */
#ifndef CLI_DATA_POISON_H
#define CLI_DATA_POISON_H

#include "base/option.h"
#include "recsys/ratings.h"

struct cli_poison {
    const char *shill;          /* of ratings */
    const char *trigger, *from; /* of images: the mark, and the class whose images get it */
    double percent, skew;
    const char *index; /* NULL: beside the copy */
    bool yes;
};
#define CLI_POISON_DEFAULTS                                                         \
    {                                                                               \
        .shill = "mixed", .trigger = "square", .from = "0", .percent = 5, .skew = 1 \
    }
extern const struct base_option cli_poison_options[];

/* Ratings or images, whichever `name` is. `target`: the class that marked images are given; NULL:
 * 1. */
base_status cli_poison(const struct cli_poison *poison, const char *name, const char *out,
                       uint64_t seed, const char *target, const struct recsys_options *options,
                       bool json);

#endif
