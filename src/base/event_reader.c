/* SPDX-License-Identifier: MIT */
#include "base/event_reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* ---- a line ---- */

/* Each of these moves past something of the line, which ends with a zero; NULL: it is not there. */

static const char *past_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

static const char *past_text(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if (*at == '\\')
            at++;
        if ((unsigned char)*at < 0x20)
            return NULL;
    }
    return at + 1;
}

/* Brackets that match in number, and texts between them: more is not asked of what is inside. */
static const char *past_brackets(const char *at)
{
    int depth = 0;

    do {
        if (*at == '"') {
            if ((at = past_text(at)) == NULL)
                return NULL;
            continue;
        }
        if (*at == '\0')
            return NULL;
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        at++;
    } while (depth > 0);
    return at;
}

static const char *past_value(const char *at)
{
    static const char *const words[] = {"null", "true", "false"};
    size_t count;

    if (*at == '"')
        return past_text(at);
    if (*at == '[' || *at == '{')
        return past_brackets(at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    count = strspn(at, "+-.0123456789eE");
    return count > 0 ? at + count : NULL;
}

static const char *past_field(const char *at, struct base_event_field *field)
{
    const char *end = past_text(at);

    if (end == NULL)
        return NULL;
    field->key = at + 1;
    field->key_length = (size_t)(end - at) - 2;
    at = past_blanks(end);
    if (*at != ':')
        return NULL;
    field->value = past_blanks(at + 1);
    if ((end = past_value(field->value)) == NULL)
        return NULL;
    field->value_length = (size_t)(end - field->value);
    return past_blanks(end);
}

bool base_event_parse(const char *text, size_t length, struct base_event_line *line)
{
    const char *at = past_blanks(text);

    line->text = text;
    line->length = length;
    line->field_count = 0;
    if (*at != '{')
        return false;
    do {
        if (line->field_count == BASE_EVENT_FIELDS)
            return false;
        at = past_field(past_blanks(at + 1), &line->fields[line->field_count++]);
    } while (at != NULL && *at == ',');
    return at != NULL && *at == '}' && past_blanks(at + 1) == text + length &&
           base_event_key_is(&line->fields[0], "event") && line->fields[0].value[0] == '"';
}

bool base_event_key_is(const struct base_event_field *field, const char *key)
{
    return strlen(key) == field->key_length && memcmp(field->key, key, field->key_length) == 0;
}

bool base_event_is(const struct base_event_line *line, const char *kind)
{
    const struct base_event_field *field = &line->fields[0];

    return strlen(kind) + 2 == field->value_length &&
           memcmp(field->value + 1, kind, field->value_length - 2) == 0;
}

const struct base_event_field *base_event_field(const struct base_event_line *line, const char *key)
{
    for (size_t i = 0; i < line->field_count; i++)
        if (base_event_key_is(&line->fields[i], key))
            return &line->fields[i];
    return NULL;
}

double base_event_field_number(const struct base_event_field *field)
{
    char *end;
    double number = NAN;

    if (strchr("-0123456789", field->value[0]) != NULL) {
        number = strtod(field->value, &end); /* a comma or a bracket follows the number */
        if (end != field->value + field->value_length || !isfinite(number))
            return NAN;
    }
    return number;
}

double base_event_number(const struct base_event_line *line, const char *key)
{
    const struct base_event_field *field = base_event_field(line, key);

    return field != NULL ? base_event_field_number(field) : NAN;
}

bool base_event_rewinds(const struct base_event_line *line, double *step_p)
{
    *step_p = base_event_number(line, "step");
    return isfinite(*step_p) && (base_event_is(line, "view") || base_event_is(line, "back") ||
                                 base_event_is(line, "resume"));
}

json_t *base_event_json(const struct base_event_line *line)
{
    return json_loadb(line->text, line->length, 0, NULL);
}

/* ---- a file ---- */

struct base_event_reader {
    int fd;
    char *bytes;
    size_t room, filled, at; /* bytes[at … filled) are read from the file, and not given out */
    bool ended, skipping;    /* skipping: the line is too long, and its end is still to come */
    bool follows;
    size_t damaged;
    struct base_event_line line;
};

base_status base_event_reader_open(const char *path, struct base_event_reader **reader_p)
{
    enum { FIRST_ROOM = 256 << 10 };
    base_status st = BASE_OK;
    struct base_event_reader *r = base_calloc(1, sizeof *r);
    size_t size;

    *reader_p = NULL;
    r->fd = -1;
    TRY(base_open_regular(path, &r->fd, &size));
    r->room = FIRST_ROOM;
    r->bytes = base_calloc(r->room, 1);
    *reader_p = r;
    r = NULL;
out:
    base_event_reader_close(r);
    return st;
}

/* More bytes after those that wait; the room grows with the longest line. A file that cannot be
 * read on ends there. */
static void fill(struct base_event_reader *r)
{
    ssize_t count;

    memmove(r->bytes, r->bytes + r->at, r->filled - r->at);
    r->filled -= r->at;
    r->at = 0;
    if (r->filled + 1 >= r->room && r->room >= BASE_EVENT_BYTES) {
        r->skipping = true;
        r->filled = 0;
    } else if (r->filled + 1 >= r->room) {
        r->room *= 2;
        r->bytes = base_realloc(r->bytes, r->room, 1);
    }
    do
        count = read(r->fd, r->bytes + r->filled, r->room - 1 - r->filled);
    while (count < 0 && errno == EINTR);
    r->ended = count <= 0;
    r->filled += count > 0 ? (size_t)count : 0;
}

/* The end of a file that is still written. What follows its last line is read again next time: a
 * run that is resumed cuts off a line that was torn. */
static void pause_reading(struct base_event_reader *r)
{
    off_t unread = (off_t)(r->filled - r->at);

    if (!r->skipping && lseek(r->fd, -unread, SEEK_CUR) >= 0)
        r->filled = r->at = 0;
    r->ended = false;
}

/* The next line, with a zero in place of its end; NULL after the last. */
static char *next_line(struct base_event_reader *r, size_t *length_p, bool *whole_p)
{
    size_t seen = 0;
    char *line, *end;

    while ((end = memchr(r->bytes + r->at + seen, '\n', r->filled - r->at - seen)) == NULL &&
           !r->ended) {
        seen = r->filled - r->at;
        fill(r);
        seen = r->skipping ? 0 : seen;
    }
    if (end == NULL && r->follows) {
        pause_reading(r);
        return NULL;
    }
    if (end == NULL && r->at == r->filled)
        return NULL;
    *whole_p = end != NULL;
    line = r->bytes + r->at;
    end = end != NULL ? end : r->bytes + r->filled;
    *end = '\0';
    *length_p = (size_t)(end - line);
    r->at += *length_p + (*whole_p ? 1 : 0);
    return line;
}

const struct base_event_line *base_event_next(struct base_event_reader *r)
{
    size_t length;
    bool whole;
    char *line;

    while ((line = next_line(r, &length, &whole)) != NULL) {
        bool taken = !r->skipping && base_event_parse(line, length, &r->line);

        r->skipping = false;
        if (taken)
            return &r->line;
        r->damaged += whole;
    }
    return NULL;
}

void base_event_reader_follow(struct base_event_reader *r)
{
    r->follows = true;
}

size_t base_event_reader_damaged(const struct base_event_reader *r)
{
    return r->damaged;
}

void base_event_reader_close(struct base_event_reader *r)
{
    if (r == NULL)
        return;
    if (r->fd >= 0)
        close(r->fd);
    base_free(r->bytes);
    base_free(r);
}
