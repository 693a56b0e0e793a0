/* SPDX-License-Identifier: MIT
 *
 * What `paceline data info` says of ratings: counts, density, histograms, times, what was left out.
 */
#ifndef CLI_RATINGS_INFO_H
#define CLI_RATINGS_INFO_H

#include "recsys/ratings.h"

/* `name` is what the person wrote, `path` where the ratings are. */
base_status cli_ratings_info(const char *name, const char *path,
                             const struct recsys_options *options, bool json);

#endif
