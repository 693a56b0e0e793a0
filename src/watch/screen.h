/* SPDX-License-Identifier: MIT
 *
 * A run as text for a terminal.
 */
#ifndef WATCH_SCREEN_H
#define WATCH_SCREEN_H

#include "watch/look.h"

/* At most `height` lines of `width` places each; workers that are in trouble come first, and what
 * has no room is counted. 0: no limit. */
void watch_screen(const struct watch_look *look, int width, int height, struct base_str *text);
/* The first of these lines: how far the run is. */
void watch_screen_line(const struct watch_look *look, struct base_str *text);

#endif
