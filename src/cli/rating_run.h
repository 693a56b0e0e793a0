/* SPDX-License-Identifier: MIT
 *
 * A run's rating model, opened to be asked: what `recommend` and `similar` share.
 */
#ifndef CLI_RATING_RUN_H
#define CLI_RATING_RUN_H

#include "base/str.h"
#include "recsys/asker.h"
#include "recsys/titles.h"

/* The options of both commands. */
struct cli_rating_args {
    const char *runs_dir, *titles;
    bool best, json, quiet;
    int64_t n, threads;
};
extern const struct base_option cli_rating_options[];
#define CLI_RATING_DEFAULTS         \
    {                               \
        .runs_dir = "runs", .n = 10 \
    }

struct cli_rating_run {
    struct store_checkpoint checkpoint;
    struct recsys_saved *saved;
    struct recsys_titles titles; /* zeros: there are none */
};

/* `name` as for model_open. Titles come from args->titles, or else from a movies.csv beside the
 * ratings, if there is one. */
base_status cli_rating_run_open(const char *name, const struct cli_rating_args *args,
                                struct cli_rating_run *run);
void cli_rating_run_close(struct cli_rating_run *run); /* accepts zeros */

/* The number of an item that a person names by its id. */
base_status cli_rating_run_item(const struct cli_rating_run *run, const char *id, uint32_t *item_p);

const char *cli_rating_run_title(const struct cli_rating_run *run, uint32_t item); /* or NULL */
/* "318 Shawshank Redemption, The (1994)", or the id alone, in `text`. */
void cli_rating_run_name(const struct cli_rating_run *run, uint32_t item, struct base_str *text);
/* `item` and `title` (or null); a new reference. */
json_t *cli_rating_run_json(const struct cli_rating_run *run, uint32_t item);

/* Items that no list may have: (items) with true for each, base_free. Those with fewer than `least`
 * ratings in training, and those whose ids are in the file at `path` (or NULL), one a line, the
 * first field of a table's lines; unknown ids are counted in a warning. */
base_status cli_rating_run_barred(const struct cli_rating_run *run, const char *path,
                                  uint32_t least, bool **barred_p);

/* Ratings of one user of a set that was opened; those of items that the model does not know are
 * left out and counted. base_free. */
base_status cli_rating_run_added(const struct cli_rating_run *run, const struct recsys_ratings *set,
                                 uint32_t user, struct recsys_rating **added_p, uint32_t *count_p,
                                 uint64_t *unknown_p);

#endif
