/* SPDX-License-Identifier: MIT
 *
 * Pictures of a rating model's guesses beside the truth.
 */
#ifndef CLI_RATINGS_PICTURES_H
#define CLI_RATINGS_PICTURES_H

#include "recsys/quality.h"

/* Writes DIR/guesses.svg, a point for each of some test ratings, and DIR/histogram.svg, how often
 * each value was given and guessed. Not of implicit models, whose guesses are no ratings. */
base_status cli_ratings_pictures(const struct recsys_fit *fit, const struct recsys_rows *test,
                                 const struct recsys_quality *quality, const char *dir);

#endif
