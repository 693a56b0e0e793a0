/* SPDX-License-Identifier: MIT */
#include "http/multipart.h"

#include <stdio.h>
#include <string.h>

#include "base/cursor.h"

enum { MAX_BOUNDARY = 70, MAX_PARTS = 64 }; /* RFC 2046; our forms have few fields */

static const char form[] = "multipart/form-data";

bool http_is_multipart(const char *type)
{
    return type != NULL && strncasecmp(type, form, sizeof form - 1) == 0;
}

/* "\r\n--BOUNDARY", which stands before every part but the first and after the last. */
static base_status find_boundary(const char *type, char mark[MAX_BOUNDARY + 5], size_t *count_p)
{
    const char *at = strcasestr(type, "boundary="), *end;
    size_t count;

    if (at == NULL)
        return base_fail(BASE_ERR_DATA, "the form's Content-Type names no boundary");
    at += strlen("boundary=");
    if (*at == '"')
        end = strchr(++at, '"');
    else
        end = at + strcspn(at, "; \t");
    count = end != NULL ? (size_t)(end - at) : 0;
    if (count == 0 || count > MAX_BOUNDARY)
        return base_fail(BASE_ERR_DATA, "the form's boundary has not 1 to %d characters",
                         MAX_BOUNDARY);
    *count_p = (size_t)snprintf(mark, MAX_BOUNDARY + 5, "\r\n--%.*s", (int)count, at);
    return BASE_OK;
}

/* Moves past the next `mark`; *before_p bytes came before it. */
static base_status skip_past(struct base_cursor *c, const char *mark, size_t length,
                             const char *what, size_t *before_p)
{
    const uint8_t *found = memmem(c->at, base_cursor_left(c), mark, length), *skipped;

    if (found == NULL)
        return base_fail(BASE_ERR_DATA, "the form ends within %s", what);
    *before_p = (size_t)(found - c->at);
    return base_cursor_skip(c, *before_p + length, &skipped);
}

/* The value after ` key=` in a header's line, with or without quotes; "" if there is none. */
static void parameter_of(const char *line, size_t count, const char *key,
                         char value[HTTP_PART_TEXT])
{
    const char *at = memmem(line, count, key, strlen(key)), *end = line + count;
    size_t length = 0;

    value[0] = '\0';
    if (at == NULL)
        return;
    at += strlen(key);
    if (at < end && *at == '"')
        for (at++; at + length < end && at[length] != '"';)
            length++;
    else
        while (at + length < end && at[length] != ';')
            length++;
    snprintf(value, HTTP_PART_TEXT, "%.*s", (int)length, at);
}

static void read_header(const char *line, size_t count, struct http_part *part)
{
    static const char disposition[] = "Content-Disposition:", type[] = "Content-Type:";

    if (count > sizeof disposition && strncasecmp(line, disposition, sizeof disposition - 1) == 0)
        parameter_of(line, count, " name=", part->name);
    if (count > sizeof type && strncasecmp(line, type, sizeof type - 1) == 0) {
        size_t at = sizeof type - 1;

        while (at < count && line[at] == ' ')
            at++;
        snprintf(part->type, sizeof part->type, "%.*s", (int)(count - at), line + at);
    }
}

static base_status read_headers(struct base_cursor *c, struct http_part *part)
{
    base_status st = BASE_OK;
    size_t count = 1;

    while (count > 0) {
        const char *line = (const char *)c->at;

        TRY(skip_past(c, "\r\n", 2, "a part's head", &count));
        read_header(line, count, part);
    }
out:
    return st;
}

/* Reads the part after the boundary that `c` has just passed. */
static base_status next_part(struct base_cursor *c, const char *mark, size_t length,
                             struct http_part *part_p, bool *more_p)
{
    base_status st = BASE_OK;
    const uint8_t *ending;

    *more_p = false;
    *part_p = (struct http_part){0};
    TRY(base_prefix(base_cursor_skip(c, 2, &ending), "the form"));
    if (memcmp(ending, "--", 2) == 0)
        goto out;
    if (memcmp(ending, "\r\n", 2) != 0)
        TRY(base_fail(BASE_ERR_DATA, "a boundary of the form stands on no line of its own"));
    TRY(read_headers(c, part_p));
    part_p->bytes = (const char *)c->at;
    TRY(skip_past(c, mark, length, "a part", &part_p->count));
    *more_p = true;
out:
    return st;
}

base_status http_multipart_find(const char *type, const char *bytes, size_t count, const char *name,
                                struct http_part *part_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    char mark[MAX_BOUNDARY + 5];
    struct http_part part;
    size_t length, before;
    bool more = true;

    *part_p = (struct http_part){0};
    TRY(find_boundary(type, mark, &length));
    TRY(skip_past(&c, mark + 2, length - 2, "its preamble", &before));
    for (int i = 0; more && i < MAX_PARTS; i++) {
        TRY(next_part(&c, mark, length, &part, &more));
        if (more && (part_p->bytes == NULL || strcmp(part.name, name) == 0))
            *part_p = part;
        if (more && strcmp(part.name, name) == 0)
            goto out;
    }
    if (part_p->bytes == NULL)
        TRY(base_fail(BASE_ERR_DATA, "the form has no field '%s'", name));
out:
    return st;
}
