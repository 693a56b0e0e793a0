/* SPDX-License-Identifier: MIT */
#include "http/uri.h"

#include <string.h>

#include "base/mem.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes in place. Fails on a control character, plain or encoded: no name or value needs one. */
static base_status decode(char *text, bool plus_is_space)
{
    char *to = text;

    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;

        if (c == '%') {
            int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);

            if (low < 0)
                return base_fail(BASE_ERR_DATA, "the request's address has a '%%' without two "
                                                "hexadecimal digits after it");
            c = (unsigned char)(16 * high + low);
            at += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if (c < ' ' || c == 0x7f)
            return base_fail(BASE_ERR_DATA, "the request's address has a control character in it");
        *to++ = (char)c;
    }
    *to = '\0';
    return BASE_OK;
}

static base_status parse_path(char *path, struct http_uri *uri)
{
    base_status st = BASE_OK;
    char *rest = path + 1;

    for (char *segment; (segment = strsep(&rest, "/")) != NULL;) {
        if (uri->segment_count == HTTP_MAX_SEGMENTS)
            TRY(base_fail(BASE_ERR_DATA, "the request's path has more than %d segments",
                          HTTP_MAX_SEGMENTS));
        TRY(decode(segment, false));
        if (strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0)
            TRY(base_fail(BASE_ERR_DATA, "the request's path has a segment '%s'", segment));
        uri->segments[uri->segment_count++] = segment;
    }
    while (uri->segment_count > 0 && uri->segments[uri->segment_count - 1][0] == '\0')
        uri->segment_count--;
out:
    return st;
}

static base_status parse_query(char *query, struct http_uri *uri)
{
    base_status st = BASE_OK;

    for (char *pair; (pair = strsep(&query, "&")) != NULL;) {
        char *name = strsep(&pair, "=");

        if (name[0] == '\0' && pair == NULL)
            continue;
        if (uri->parameter_count == HTTP_MAX_PARAMETERS)
            TRY(base_fail(BASE_ERR_DATA, "the request has more than %d parameters",
                          HTTP_MAX_PARAMETERS));
        TRY(decode(name, true));
        if (pair != NULL)
            TRY(decode(pair, true));
        uri->parameters[uri->parameter_count++] =
            (struct http_parameter){name, pair != NULL ? pair : ""};
    }
out:
    return st;
}

base_status http_uri_parse(const char *target, struct http_uri *uri_p)
{
    base_status st = BASE_OK;
    char *path, *query;

    *uri_p = (struct http_uri){.text = base_strdup(target)};
    query = uri_p->text;
    path = strsep(&query, "?");
    if (path[0] != '/')
        TRY(base_fail(BASE_ERR_DATA, "the request's path does not begin with '/'"));
    TRY(parse_path(path, uri_p));
    if (query != NULL)
        TRY(parse_query(query, uri_p));
out:
    if (st != BASE_OK)
        http_uri_fini(uri_p);
    return st;
}

void http_uri_fini(struct http_uri *uri)
{
    base_free(uri->text);
    *uri = (struct http_uri){0};
}

const char *http_uri_parameter(const struct http_uri *uri, const char *name, int index)
{
    for (int i = 0; i < uri->parameter_count; i++)
        if (strcmp(uri->parameters[i].name, name) == 0 && index-- == 0)
            return uri->parameters[i].value;
    return NULL;
}
