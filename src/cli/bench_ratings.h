/* SPDX-License-Identifier: MIT
 *
 * paceline bench ratings DATA: how fast a rating model is fitted, and how good it gets.
 */
#ifndef CLI_BENCH_RATINGS_H
#define CLI_BENCH_RATINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct cli_bench_ratings {
    const char *data, *model, *split;
    int64_t seed;
    int threads;
    int lists;            /* items of each user's list that is judged; 0: none are */
    const char *pictures; /* the folder for pictures of guesses; NULL: none */
    bool json;
};

base_status cli_bench_ratings(const struct cli_bench_ratings *b);

#endif
