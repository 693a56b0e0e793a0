/* SPDX-License-Identifier: MIT
 *
 * What a person reads: lines on stderr. stdout belongs to --json and to data asked for.
 * A progress line at the bottom of a terminal is wiped before a message and drawn again by its
 * owner; where stderr is no terminal there is no progress line. Any thread may log.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/status.h"

enum base_level { BASE_QUIET, BASE_WARN, BASE_INFO };

void base_log_level(enum base_level level); /* default BASE_INFO */
void base_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void base_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line that another process chose to say; shown wherever warnings are. */
void base_relay(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool base_log_terminal(void); /* stderr is a terminal */
bool base_log_color(void);    /* … and NO_COLOR is not set and TERM is not dumb */

/* From now on every line goes to this file, too, with its time, whatever the level; appends. */
base_status base_log_copy(const char *path);

/* Draws the progress line (terminal only, at most ten times a second unless `force`), cut to the
 * terminal's width of the moment. A process whose output another one relays to a terminal
 * (PACELINE_PROGRESS is set) says BASE_PROGRESS_MARK and the line instead. */
enum { BASE_PROGRESS_MARK = '\x1f' };
void base_progress(bool force, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool base_progress_shown(void); /* on this process's terminal or its agent's */
void base_progress_clear(void);

#endif
