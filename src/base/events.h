/* SPDX-License-Identifier: MIT
 *
 * The event log of a run: one JSON object a line. base_event copies a line into a ring; a thread
 * of its own writes the file, so that a training step makes no system call of its own. When the
 * ring is full the line is counted and dropped, and the count is written at the end: a step
 * never waits for a disk. One producer thread.
 */
#ifndef BASE_EVENTS_H
#define BASE_EVENTS_H

#include "base/status.h"

struct base_events;

base_status base_events_open(const char *path, struct base_events **events_p); /* appends */
base_status base_events_close(struct base_events *events); /* drains; accepts NULL */

/* What was put in so far is in the file, or closing will tell why not. For the producer, between
 * steps; accepts NULL. */
void base_events_flush(struct base_events *events);

/* `format` makes one JSON object without newline; NULL events are ignored. */
void base_event(struct base_events *events, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
