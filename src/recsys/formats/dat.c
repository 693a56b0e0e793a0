/* SPDX-License-Identifier: MIT
 *
 * MovieLens' ratings.dat: "user::item::rating::seconds", without a line of names.
 */
#include "recsys/recsys_private.h"

static bool dat_recognise(const char *text, size_t count, struct recsys_layout *layout)
{
    *layout = (struct recsys_layout){
        .separator = "::", .role = {RECSYS_USER, RECSYS_ITEM, RECSYS_RATING, RECSYS_TIME}};
    for (layout->columns = 3; layout->columns <= 4; layout->columns++)
        if (recsys_fits(layout, text, count))
            return true;
    return false;
}

const struct recsys_format recsys_format_dat = {
    .name = "dat",
    .help = "lines of user::item::rating::seconds (MovieLens)",
    .files = (const char *const[]){"ratings.dat", NULL},
    .recognise = dat_recognise,
};
