/* SPDX-License-Identifier: MIT
 *
 * Reads what base/events.h and the coordinator have written: files of one JSON object a line, whose
 * first member is "event". A file is read as a stream, with memory for one line, however long it
 * is. Members are found without making a tree of them, which a file of a million steps needs; a
 * line that is no such object is counted and passed over. One thread's.
 */
#ifndef BASE_EVENT_READER_H
#define BASE_EVENT_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/status.h"

enum { BASE_EVENT_FIELDS = 32, BASE_EVENT_BYTES = 16 << 20 };

/* Both are pieces of the line, without a zero at their end: a key without its quotes, as it is
 * written there, and a value as JSON. */
struct base_event_field {
    const char *key, *value;
    size_t key_length, value_length;
};

struct base_event_line {
    const char *text; /* with a zero at its end */
    size_t length;
    struct base_event_field fields[BASE_EVENT_FIELDS]; /* the first is "event" */
    size_t field_count;
};

/* Takes a line apart; false: it is no such object, or has more members than there is room for.
 * `text` has a zero at its end. */
bool base_event_parse(const char *text, size_t length, struct base_event_line *line_p);

bool base_event_is(const struct base_event_line *line, const char *kind);
const struct base_event_field *base_event_field(const struct base_event_line *line,
                                                const char *key);
/* A member's number; NAN: there is none, or it is not finite. */
double base_event_number(const struct base_event_line *line, const char *key);
double base_event_field_number(const struct base_event_field *field);
bool base_event_key_is(const struct base_event_field *field, const char *key);
/* Does a run go on after a step that the event names, because its view is new, it went back or it
 * was resumed? What it told of later steps never was. */
bool base_event_rewinds(const struct base_event_line *line, double *step_p);
/* The whole of it, a new reference; NULL: a value inside a member is not JSON. */
json_t *base_event_json(const struct base_event_line *line);

struct base_event_reader;
base_status base_event_reader_open(const char *path, struct base_event_reader **reader_p);
/* For a file that is being written: from now on a last line without an end waits for its rest, and
 * base_event_next goes on where the file ended before. */
void base_event_reader_follow(struct base_event_reader *reader);
/* The next event, which is valid until the next call; NULL at the end. */
const struct base_event_line *base_event_next(struct base_event_reader *reader);
/* Lines that were passed over. A last line without an end is not counted: its writer may be at it.
 */
size_t base_event_reader_damaged(const struct base_event_reader *reader);
void base_event_reader_close(struct base_event_reader *reader); /* accepts NULL */

#endif
