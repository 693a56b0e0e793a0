/* SPDX-License-Identifier: MIT
 *
 * What a person is told about the quality of a rating model, and pictures of its guesses beside the
 * truth.
 */
#ifndef CLI_RATINGS_QUALITY_H
#define CLI_RATINGS_QUALITY_H

#include "base/json.h"
#include "base/str.h"
#include "recsys/quality.h"

/* An object with `mae`, `rmse` and the rest (docs/json.md); a new reference. */
json_t *cli_quality_json(const struct recsys_fit *fit, const struct recsys_quality *quality);

/* The same as lines of text. */
void cli_quality_text(const struct recsys_fit *fit, const struct recsys_quality *quality,
                      struct base_str *text);

/* Writes DIR/guesses.svg, a point for each of some test ratings, and DIR/histogram.svg, how often
 * each value was given and guessed. Not of implicit models, whose guesses are no ratings. */
base_status cli_quality_pictures(const struct recsys_fit *fit, const struct recsys_rows *test,
                                 const struct recsys_quality *quality, const char *dir);

#endif
