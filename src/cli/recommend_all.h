/* SPDX-License-Identifier: MIT
 *
 * paceline recommend RUN --all -o FILE: a list for every user, as a table that is written while the
 * lists are made, so that memory does not grow with the number of users.
 */
#ifndef CLI_RECOMMEND_ALL_H
#define CLI_RECOMMEND_ALL_H

#include "cli/rating_run.h"

struct cli_recommend_all {
    const struct cli_rating_run *run;
    const struct recsys_ratings *added; /* for the users of these ratings alone; NULL: of the run */
    const bool *barred;                 /* (items) */
    bool include_rated;
    uint32_t n;
    const char *path;
    uint64_t users, lines, short_lists; /* set: users with lists, of which some have fewer than n */
    uint64_t strangers; /* set: users without a list, of whom the model knows nothing */
};

/* The file appears when it is complete; Ctrl-C leaves nothing. */
base_status cli_recommend_all(struct cli_recommend_all *all);

#endif
