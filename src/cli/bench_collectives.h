/* SPDX-License-Identifier: MIT
 *
 * paceline bench collectives: starts workers that measure (cli/programs/collectives.c) and shows
 * what they found.
 */
#ifndef CLI_BENCH_COLLECTIVES_H
#define CLI_BENCH_COLLECTIVES_H

#include "cluster/launch.h"

struct cli_bench_collectives {
    struct cluster_flags cluster;
    const char *collective; /* kinds and algorithms; NULL: all kinds, chosen algorithms */
    int64_t bytes;          /* 0: 4 B to 256 MB */
    double seconds;
    bool every, engine, json;
};

base_status cli_bench_collectives(const struct cli_bench_collectives *b);

#endif
