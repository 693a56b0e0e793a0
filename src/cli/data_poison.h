/* SPDX-License-Identifier: MIT
 *
 * paceline data poison: a poisoned copy of ratings and an index of what is false in it, so that
 * `paceline audit` can be measured.
 */
#ifndef CLI_DATA_POISON_H
#define CLI_DATA_POISON_H

#include "base/option.h"
#include "recsys/ratings.h"

struct cli_poison {
    const char *shill;
    double percent;
    const char *index; /* NULL: beside the copy */
    bool yes;
};
#define CLI_POISON_DEFAULTS            \
    {                                  \
        .shill = "mixed", .percent = 5 \
    }
extern const struct base_option cli_poison_options[];

base_status cli_poison(const struct cli_poison *poison, const char *name, const char *out,
                       uint64_t seed, const struct recsys_options *options, bool json);

#endif
