/* SPDX-License-Identifier: MIT
 *
 * MovieLens' u.data: user, item, rating and seconds between tabs, without a line of names. Other
 * tables may have four columns of numbers, too; the times tell: none is earlier than 1973.
 */
#include "recsys/recsys_private.h"

static const uint32_t EARLIEST = 100000000;

static bool tab_recognise(const char *text, size_t count, struct recsys_layout *layout)
{
    struct recsys_field line = recsys_first_line(text, count), fields[RECSYS_ROLES] = {0};
    uint32_t seconds;

    *layout =
        (struct recsys_layout){.separator = "\t",
                               .columns = 4,
                               .role = {RECSYS_USER, RECSYS_ITEM, RECSYS_RATING, RECSYS_TIME}};
    return recsys_fits(layout, text, count) &&
           recsys_cut(layout, line.at, line.length, fields) == 4 &&
           recsys_time(fields[RECSYS_TIME], &seconds) && seconds >= EARLIEST;
}

const struct recsys_format recsys_format_tab = {
    .name = "tab",
    .help = "lines of user, item, rating and seconds between tabs (MovieLens' u.data)",
    .files = (const char *const[]){"u.data", NULL},
    .recognise = tab_recognise,
};
