/* SPDX-License-Identifier: MIT
 *
 * Titles of items from a table: MovieLens' movies.csv, or any CSV with a column of ids and one
 * called title or name.
 */
#ifndef RECSYS_TITLES_H
#define RECSYS_TITLES_H

#include "recsys/ratings.h"

struct recsys_titles {
    char **title;   /* (items); NULL: it has none */
    uint32_t items; /* of the ratings */
    uint32_t known; /* those with a title */
    uint64_t bad_lines;
};

base_status recsys_titles_open(const char *path, const struct recsys_ids *items,
                               struct recsys_titles *titles_p);
void recsys_titles_close(struct recsys_titles *titles); /* accepts zeros */

#endif
