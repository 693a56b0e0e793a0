/* SPDX-License-Identifier: MIT
 *
 * The Netflix Prize: a line "MOVIE:" and below it lines of "user,rating,2005-09-06". Either a file
 * a movie (mv_0000001.txt) or a few files of many (combined_data_1.txt).
 */
#include <string.h>

#include "recsys/recsys_private.h"

static bool netflix_recognise(const char *text, size_t count, struct recsys_layout *layout)
{
    struct recsys_field first = recsys_first_line(text, count);
    uint32_t movie;
    const char *rest = first.at + first.length;

    *layout = (struct recsys_layout){.separator = ",",
                                     .columns = 3,
                                     .role = {RECSYS_USER, RECSYS_RATING, RECSYS_TIME},
                                     .headings = true};
    if (first.length < 2 || first.at[first.length - 1] != ':')
        return false;
    first.length--;
    return recsys_number(first, RECSYS_MOST_NUMBER, &movie) &&
           recsys_fits(layout, rest, (size_t)(text + count - rest));
}

const struct recsys_format recsys_format_netflix = {
    .name = "netflix",
    .help = "MOVIE: and below it lines of user,rating,date (Netflix Prize)",
    .files = (const char *const[]){"combined_data_*.txt", "mv_*.txt", NULL},
    .recognise = netflix_recognise,
};
