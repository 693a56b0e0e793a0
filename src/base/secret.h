/* SPDX-License-Identifier: MIT
 *
 * Where a person's secret comes from: a file that only its owner can read, or the environment;
 * never a command line, which other users of the machine see. Messages do not show it: it may be a
 * right one with one wrong letter.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* The line in the token file at `path`; where that is NULL, the variable; where that is unset,
 * *found_p is false. The variable is removed from the environment in any case. What does not fit
 * into `size` bytes is cut: a right one must leave at least two bytes free, and the caller refuses
 * a longer one, under the name of path or variable. The caller wipes `text`. */
base_status base_secret_find(const char *path, const char *variable, char *text, size_t size,
                             bool *found_p);

#endif
